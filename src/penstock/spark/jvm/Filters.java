package io.penstock;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.ObjectMapper;
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
import scala.collection.immutable.Seq;

/**
 * Catalyst expressions as JSON, exactly: columns by their path, literals in Catalyst's internal form, everything else by
 * the name of its class. Nothing is interpreted here; what a class means is decided in Python. A value that JSON cannot
 * hold exactly (an array, a text that is not UTF-8) is written as a call of `Opaque`, which means nothing to anybody.
 */
public class Filters {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String FILE_METADATA = "__file_source_constant_metadata_col";
  private static final int DEEPEST = 200; // JSON may be nested 1,000 deep, and a level here is two there

  /** One expression as JSON. */
  public static String toJson(Expression expression) {
    return text(plain(expression, 0));
  }

  /** All expressions, as they are in JSON. */
  public static List plain(Seq expressions) {
    ArrayList all = new ArrayList();
    for (Expression expression : Seqs.list(expressions)) {
      all.add(plain(expression, 0));
    }
    return all;
  }

  /** Maps, lists and plain values as JSON. */
  public static String text(Object value) {
    try {
      return JSON.writeValueAsString(value);
    } catch (java.io.IOException error) {
      throw new IllegalStateException("a question cannot be written", error);
    }
  }

  private static Map plain(Expression expression, int depth) {
    LinkedHashMap node = new LinkedHashMap();
    ArrayList path = new ArrayList();
    int[] casts = new int[1];
    if (depth > DEEPEST || !isExact(expression)) {
      node.put("call", "Opaque");
      node.put("deterministic", Boolean.TRUE);
      node.put("children", new ArrayList());
    } else if (collectPath(expression, path, casts)) {
      node.put("column", path);
      if (casts[0] > 0) {
        node.put("casts", Integer.valueOf(casts[0]));
      }
    } else if (expression instanceof Literal) {
      node.put("value", value(((Literal) expression).value()));
    } else {
      describe(expression, depth, node);
    }
    node.put("type", expression.dataType().catalogString());
    return node;
  }

  /** Whether the values that stand in an expression itself can be written as they are. */
  private static boolean isExact(Expression expression) {
    if (expression instanceof Literal) {
      return isPlain(((Literal) expression).value());
    }
    if (expression instanceof InSet) {
      for (Object value : values((InSet) expression)) {
        if (!isPlain(value)) {
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

  private static List values(InSet set) {
    return Seqs.list(set.hset().toSeq());
  }

  private static void describe(Expression expression, int depth, LinkedHashMap node) {
    node.put("call", expression.getClass().getSimpleName());
    if (expression instanceof TimeZoneAwareExpression && ((TimeZoneAwareExpression) expression).timeZoneId().isDefined()) {
      node.put("zone", ((TimeZoneAwareExpression) expression).timeZoneId().get());
    }
    if (expression instanceof Cast) {
      node.put("mode", ((Cast) expression).evalMode().toString());
    }
    if (expression instanceof Like) {
      node.put("escape", String.valueOf(((Like) expression).escapeChar()));
    }
    if (expression instanceof InSet) {
      ArrayList set = new ArrayList();
      for (Object value : values((InSet) expression)) {
        set.add(value(value));
      }
      node.put("set", set);
    }
    node.put("deterministic", Boolean.valueOf(expression.deterministic()));
    ArrayList children = new ArrayList();
    for (Expression child : Seqs.list(expression.children())) {
      children.add(plain(child, depth + 1));
    }
    node.put("children", children);
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
  private static Object value(Object value) {
    boolean isExact = value == null || value instanceof Boolean || value instanceof byte[] || value instanceof Integer
        || value instanceof Long || value instanceof Short || value instanceof Byte;
    return isExact ? value : value.toString();
  }
}
