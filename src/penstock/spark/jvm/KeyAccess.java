package io.penstock;

import java.util.ArrayList;

import org.apache.spark.sql.catalyst.expressions.ArrayContains;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
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
    Expression map = null;
    Expression key = null;
    if (expression instanceof GetMapValue) {
      map = ((GetMapValue) expression).child();
      key = ((GetMapValue) expression).key();
    } else if (expression instanceof ElementAt) {
      map = ((ElementAt) expression).left();
      key = ((ElementAt) expression).right();
    } else if (expression instanceof ArrayContains && ((ArrayContains) expression).left() instanceof MapKeys) {
      map = ((MapKeys) ((ArrayContains) expression).left()).child();
      key = ((ArrayContains) expression).right();
    }
    if (expression instanceof IsNull || expression instanceof IsNotNull) {
      Expression tested = (Expression) expression.children().apply(0);
      return isPlain(tested) ? new KeyAccess(tested, null, true) : null;
    }
    if (expression instanceof Size) {
      Expression counted = ((Size) expression).child();
      return isPlain(counted) ? new KeyAccess(counted, null, false) : null;
    }
    if (!(key instanceof Literal) || ((Literal) key).value() == null || !isPlain(map)) {
      return null;
    }
    boolean plain = DataTypes.StringType.equals(key.dataType());
    return plain ? new KeyAccess(map, (Literal) key, expression instanceof ArrayContains) : null;
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
      return new Coalesce(PlannedFiles.seq(new Object[] {answer, none}));
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

  /** The same look into another map. */
  private Expression on(Expression other) {
    if (key == null) {
      return contains ? (Expression) new IsNotNull(other) : (Expression) new Size(other, false);
    }
    return contains
        ? (Expression) new ArrayContains(new MapKeys(other), key)
        : (Expression) new GetMapValue(other, key);
  }

  /** The same look into what is found in a structure by the places of its fields. */
  public Expression on(Expression other, ArrayList path) {
    for (int i = 0; i < path.size(); i++) {
      other = new GetStructField(other, ((Integer) path.get(i)).intValue(), scala.Option.empty());
    }
    return on(other);
  }

  private Object text() {
    return key == null ? (Object) "" : key.value(); // never equal to a key, which is a UTF8String
  }

  /** The look into a map that is a column, or a field somewhere in it: what one operator asks of another. */
  public Wanted wanted(AttributeReference column, ArrayList path) {
    return new Wanted(column.exprId(), path, this);
  }

  /** One key of one column. */
  public static class Wanted {
    public final ExprId id;
    public final ArrayList path; // of Integer
    public final KeyAccess access;

    Wanted(ExprId id, ArrayList path, KeyAccess access) {
      this.id = id;
      this.path = path;
      this.access = access;
    }

    /** The same key of another column, which stands for this one. */
    public Wanted of(ExprId other) {
      return new Wanted(other, path, access);
    }

    public String name() {
      return access.key == null ? "__map" : "__key_" + access.key.value();
    }

    public boolean equals(Object other) {
      if (!(other instanceof Wanted)) {
        return false;
      }
      Wanted wanted = (Wanted) other;
      return id.equals(wanted.id) && path.equals(wanted.path) && access.contains == wanted.access.contains
          && access.text().equals(wanted.access.text());
    }

    public int hashCode() {
      return 31 * (31 * id.hashCode() + path.hashCode()) + access.text().hashCode() + (access.contains ? 1 : 0);
    }
  }
}
