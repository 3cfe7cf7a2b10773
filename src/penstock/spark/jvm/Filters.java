package io.penstock;

import java.util.Base64;
import java.util.List;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;

/**
 * Catalyst expressions as JSON, exactly: columns by their path, literals in Catalyst's internal form, everything else by
 * the name of its class. Nothing is interpreted here; what a class means is decided in Python.
 */
public class Filters {
  private static final JsonFactory JSON = new JsonFactory();

  /** All expressions as one JSON array. */
  public static String toJson(scala.collection.Seq expressions) throws java.io.IOException {
    java.io.StringWriter text = new java.io.StringWriter();
    JsonGenerator out = JSON.createGenerator(text);
    out.writeStartArray();
    for (int i = 0; i < expressions.size(); i++) {
      write(out, (Expression) expressions.apply(i));
    }
    out.writeEndArray();
    out.close();
    return text.toString();
  }

  private static void write(JsonGenerator out, Expression expression) throws java.io.IOException {
    java.util.ArrayList path = new java.util.ArrayList();
    out.writeStartObject();
    if (collectPath(expression, path)) {
      out.writeArrayFieldStart("column");
      for (int i = 0; i < path.size(); i++) {
        out.writeString((String) path.get(i));
      }
      out.writeEndArray();
    } else if (expression instanceof Literal) {
      Literal literal = (Literal) expression;
      out.writeFieldName("value");
      writeValue(out, literal.value());
    } else {
      writeCall(out, expression);
    }
    out.writeStringField("type", expression.dataType().catalogString());
    out.writeEndObject();
  }

  private static void writeCall(JsonGenerator out, Expression expression) throws java.io.IOException {
    out.writeStringField("call", expression.getClass().getSimpleName());
    if (expression instanceof Cast) {
      out.writeStringField("mode", ((Cast) expression).evalMode().toString());
    }
    if (expression instanceof Like) {
      out.writeStringField("escape", String.valueOf(((Like) expression).escapeChar()));
    }
    if (expression instanceof InSet) {
      out.writeArrayFieldStart("set");
      scala.collection.Iterator values = ((InSet) expression).hset().iterator();
      while (values.hasNext()) {
        writeValue(out, values.next());
      }
      out.writeEndArray();
    }
    out.writeBooleanField("deterministic", expression.deterministic());
    out.writeArrayFieldStart("children");
    scala.collection.Seq children = expression.children();
    for (int i = 0; i < children.size(); i++) {
      write(out, (Expression) children.apply(i));
    }
    out.writeEndArray();
  }

  /** The path of a column or of a field inside one; false for anything else. */
  private static boolean collectPath(Expression expression, List path) {
    if (expression instanceof AttributeReference) {
      path.add(((AttributeReference) expression).name());
      return true;
    }
    if (expression instanceof GetStructField) {
      GetStructField field = (GetStructField) expression;
      if (collectPath(field.child(), path)) {
        path.add(field.extractFieldName());
        return true;
      }
    }
    return false;
  }

  /** Numbers as numbers, bytes in base64, all else (text, decimals, floats with NaN) as text. */
  private static void writeValue(JsonGenerator out, Object value) throws java.io.IOException {
    if (value == null) {
      out.writeNull();
    } else if (value instanceof Boolean) {
      out.writeBoolean(((Boolean) value).booleanValue());
    } else if (value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte) {
      out.writeNumber(((Number) value).longValue());
    } else if (value instanceof byte[]) {
      out.writeString(Base64.getEncoder().encodeToString((byte[]) value));
    } else {
      out.writeString(value.toString());
    }
  }
}
