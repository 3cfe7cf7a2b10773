package io.penstock;

import java.util.Arrays;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.ArrayContains;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.ElementAt;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetMapValue;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MapKeys;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Size;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import scala.collection.immutable.Seq;

/**
 * What is asked of a map by a key that is written in the query: its value by m['k'], element_at(m, 'k') and the `try_`
 * form of it, all of which give null for a key that is not there, in ANSI mode too; or whether it is there by
 * map_contains_key(m, 'k'), which Spark has rewritten by now. Without a key it is asked whether there is a map, or how
 * many keys it has.
 */
public class KeyAccess {
  public final Expression map;
  private final Literal key; // null for the map itself
  private final boolean contains;

  private KeyAccess(Expression map, Literal key, boolean contains) {
    this.map = map;
    this.key = key;
    this.contains = contains;
  }

  /** The access that an expression is; null when it is none. */
  public static KeyAccess of(Expression expression) {
    Seq children = expression.children();
    boolean ofWhole = expression instanceof IsNull || expression instanceof IsNotNull || expression instanceof Size;
    boolean contains = expression instanceof ArrayContains && children.apply(0) instanceof MapKeys;
    if (!ofWhole && !contains && !(expression instanceof GetMapValue) && !(expression instanceof ElementAt)) {
      return null;
    }
    Expression map = contains ? ((MapKeys) children.apply(0)).child() : (Expression) children.apply(0);
    if (!isPlain(map)) {
      return null;
    }
    if (ofWhole) {
      return new KeyAccess(map, null, !(expression instanceof Size));
    }
    Literal key = children.apply(1) instanceof Literal ? (Literal) children.apply(1) : null;
    boolean isText = key != null && key.value() != null && DataTypes.StringType.equals(key.dataType());
    return isText ? new KeyAccess(map, key, contains) : null;
  }

  /** Whether this is a map by texts, and not under a collation that takes different keys for the same. */
  private static boolean isPlain(Expression map) {
    return map.resolved() && map.dataType() instanceof MapType
        && DataTypes.StringType.equals(((MapType) map.dataType()).keyType());
  }

  /** The answer of a shredded map; null when there is none that would be less work than the map. */
  public Expression of(ShreddedMap shredded) {
    if (key == null) {
      return contains ? shredded.isThere() : shredded.whole().size();
    }
    return shredded.answer(key, contains);
  }

  /** The answer in place of the expression that asked. */
  public static Expression inPlaceOf(Expression asking, Expression answer) {
    if (asking instanceof Size && ((Size) asking).legacySizeOfNull()) {
      Literal none = new Literal(Integer.valueOf(-1), DataTypes.IntegerType);
      return new Coalesce(Seqs.seq(answer, none));
    }
    if (!(asking instanceof IsNull || asking instanceof IsNotNull)) {
      return answer;
    }
    // Null where an outer join has found no row, or a window function: there is no map then.
    Expression there = answer.nullable()
        ? new EqualNullSafe(answer, new Literal(Boolean.TRUE, DataTypes.BooleanType))
        : answer;
    return asking instanceof IsNull ? new Not(there) : there;
  }

  /** The same look into what is found in another map, or in a structure by the places of its fields. */
  public Expression on(Expression other, List<Integer> path) {
    for (Integer place : path) {
      other = new GetStructField(other, place.intValue(), scala.Option.empty());
    }
    if (key == null) {
      return contains ? (Expression) new IsNotNull(other) : (Expression) new Size(other, false);
    }
    return contains
        ? (Expression) new ArrayContains(new MapKeys(other), key)
        : (Expression) new GetMapValue(other, key);
  }

  /** One key of a column, or of a field somewhere in it: what one operator asks of another. */
  public static class Wanted {
    public final ExprId id;
    public final List<Integer> path;
    public final KeyAccess access;

    Wanted(ExprId id, List<Integer> path, KeyAccess access) {
      this.id = id;
      this.path = path;
      this.access = access;
    }

    public String name() {
      return access.key == null ? "__map" : "__key_" + access.key.value();
    }

    private List identity() {
      Object text = access.key == null ? (Object) "" : access.key.value(); // never equal: a key is a UTF8String
      return Arrays.asList(id, path, text, Boolean.valueOf(access.contains));
    }

    public boolean equals(Object other) {
      return other instanceof Wanted && ((Wanted) other).identity().equals(identity());
    }

    public int hashCode() {
      return identity().hashCode();
    }
  }
}
