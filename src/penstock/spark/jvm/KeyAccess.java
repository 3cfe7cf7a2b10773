package io.penstock;

import java.util.ArrayList;

import org.apache.spark.sql.catalyst.expressions.ArrayContains;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ElementAt;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetMapValue;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MapKeys;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;

/**
 * A look into a map by a key that is written in the query: m['k'], element_at(m, 'k') and its `try_` form, all of which give
 * null for a key that is not there, in ANSI mode too; or map_contains_key(m, 'k'), which Spark has rewritten by now.
 */
public class KeyAccess {
  public final Expression map;
  public final Literal key;
  public final boolean contains;

  public KeyAccess(Expression map, Literal key, boolean contains) {
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
    if (!(key instanceof Literal) || ((Literal) key).value() == null || !(map.dataType() instanceof MapType)) {
      return null;
    }
    boolean plain = DataTypes.StringType.equals(((MapType) map.dataType()).keyType())
        && DataTypes.StringType.equals(key.dataType()); // under another collation, other keys are equal
    return plain ? new KeyAccess(map, (Literal) key, expression instanceof ArrayContains) : null;
  }

  /** The same look into another map. */
  public Expression on(Expression other) {
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
      return "__key_" + access.key.value();
    }

    public boolean equals(Object other) {
      if (!(other instanceof Wanted)) {
        return false;
      }
      Wanted wanted = (Wanted) other;
      return id.equals(wanted.id) && path.equals(wanted.path) && access.contains == wanted.access.contains
          && access.key.value().equals(wanted.access.key.value());
    }

    public int hashCode() {
      return 31 * (31 * id.hashCode() + path.hashCode()) + access.key.value().hashCode() + (access.contains ? 1 : 0);
    }
  }
}
