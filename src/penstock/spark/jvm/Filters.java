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
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Catalyst expressions as JSON, exactly: columns by their path, literals in Catalyst's internal form, everything else by
 * the name of its class. Nothing is interpreted here; what a class means is decided in Python. A value that JSON cannot
 * hold exactly (an array, a text that is not UTF-8) is written as a call of `Opaque`, which means nothing to anybody.
 */
public class Filters {
  private static final JsonFactory JSON = new JsonFactory();
  private static final String FILE_METADATA = "__file_source_constant_metadata_col";
  private static final int DEEPEST = 200; // JSON may be nested 1,000 deep, and a level here is two there

  /** One expression as JSON. */
  public static String toJson(Expression expression) {
    try {
      java.io.StringWriter text = new java.io.StringWriter();
      JsonGenerator out = JSON.createGenerator(text);
      write(out, expression, 0);
      out.close();
      return text.toString();
    } catch (java.io.IOException error) {
      throw new IllegalStateException("a filter cannot be written", error);
    }
  }

  /** All expressions as one JSON array. */
  public static String toJson(scala.collection.Seq expressions) {
    StringBuilder all = new StringBuilder("[");
    for (int i = 0; i < expressions.size(); i++) {
      all.append(i > 0 ? "," : "").append(toJson((Expression) expressions.apply(i)));
    }
    return all.append("]").toString();
  }

  private static void write(JsonGenerator out, Expression expression, int depth) throws java.io.IOException {
    java.util.ArrayList path = new java.util.ArrayList();
    int[] casts = new int[1];
    out.writeStartObject();
    if (depth > DEEPEST || !isExact(expression)) {
      writeOpaque(out);
    } else if (collectPath(expression, path, casts)) {
      out.writeArrayFieldStart("column");
      for (int i = 0; i < path.size(); i++) {
        out.writeString((String) path.get(i));
      }
      out.writeEndArray();
      if (casts[0] > 0) {
        out.writeNumberField("casts", casts[0]);
      }
    } else if (expression instanceof Literal) {
      Literal literal = (Literal) expression;
      out.writeFieldName("value");
      writeValue(out, literal.value());
    } else {
      writeCall(out, expression, depth);
    }
    out.writeStringField("type", expression.dataType().catalogString());
    out.writeEndObject();
  }

  private static void writeOpaque(JsonGenerator out) throws java.io.IOException {
    out.writeStringField("call", "Opaque");
    out.writeBooleanField("deterministic", true);
    out.writeArrayFieldStart("children");
    out.writeEndArray();
  }

  /** Whether the values that stand in an expression itself can be written as they are. */
  private static boolean isExact(Expression expression) {
    if (expression instanceof Literal) {
      return isPlain(((Literal) expression).value());
    }
    if (expression instanceof InSet) {
      scala.collection.Iterator values = ((InSet) expression).hset().iterator();
      while (values.hasNext()) {
        if (!isPlain(values.next())) {
          return false;
        }
      }
    }
    return true;
  }

  private static boolean isPlain(Object value) {
    if (value instanceof UTF8String) { // bytes that are no UTF-8 would come out as other characters
      return UTF8String.fromString(value.toString()).equals(value);
    }
    return value == null || value instanceof Boolean || value instanceof Number || value instanceof byte[]
        || value instanceof Decimal;
  }

  private static void writeCall(JsonGenerator out, Expression expression, int depth) throws java.io.IOException {
    out.writeStringField("call", expression.getClass().getSimpleName());
    if (expression instanceof TimeZoneAwareExpression && ((TimeZoneAwareExpression) expression).timeZoneId().isDefined()) {
      out.writeStringField("zone", (String) ((TimeZoneAwareExpression) expression).timeZoneId().get());
    }
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
      write(out, (Expression) children.apply(i), depth + 1);
    }
    out.writeEndArray();
  }

  /**
   * The path of a column or of a field inside one; false for anything else. A field behind a cast that only renames has
   * the name that the cast gives it, and the casts are counted: who made them decides what the path means.
   */
  private static boolean collectPath(Expression expression, List path, int[] casts) {
    if (expression instanceof AttributeReference) {
      AttributeReference column = (AttributeReference) expression;
      if (column.metadata().contains(FILE_METADATA)) { // a field of `_metadata`, which the scan has as a column
        path.add("_metadata");
      }
      path.add(column.name());
      return true;
    }
    if (expression instanceof GetStructField) {
      GetStructField field = (GetStructField) expression;
      Expression struct = field.child();
      if (renames(struct)) {
        casts[0]++;
        struct = ((Cast) struct).child();
      }
      if (collectPath(struct, path, casts)) {
        path.add(field.extractFieldName());
        return true;
      }
    }
    return false;
  }

  private static boolean renames(Expression expression) {
    return expression instanceof Cast
        && DataType.equalsStructurally(((Cast) expression).child().dataType(), expression.dataType(), true);
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
