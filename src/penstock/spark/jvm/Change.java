package io.penstock;

import org.apache.spark.sql.catalyst.expressions.Expression;

/** A change of some nodes of a tree, as Catalyst wants it. */
public abstract class Change extends scala.runtime.AbstractPartialFunction {
  /** What comes in the place of a node; null where it stays. */
  public abstract Object change(Object node);

  public boolean isDefinedAt(Object node) {
    return change(node) != null;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    Object changed = change(node);
    return changed != null ? changed : otherwise.apply(node);
  }

  /** An expression, of whose children every node is changed. */
  public Expression below(Expression expression) {
    return (Expression) expression.mapChildren(new Everywhere(this));
  }

  /** The change of every node of an expression. */
  public static class Everywhere extends scala.runtime.AbstractFunction1 {
    private final Change change;

    Everywhere(Change change) {
      this.change = change;
    }

    public Object apply(Object expression) {
      return ((Expression) expression).transform(change);
    }
  }
}
