package io.penstock;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;

import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Lag;
import org.apache.spark.sql.catalyst.expressions.Lead;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.NthValue;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.First;
import org.apache.spark.sql.catalyst.expressions.aggregate.Last;
import org.apache.spark.sql.catalyst.expressions.aggregate.MaxBy;
import org.apache.spark.sql.catalyst.expressions.aggregate.MinBy;
import scala.collection.immutable.Seq;

/**
 * Finds the shredded map behind an access: through structures that are made and taken apart again, through branches, and
 * through functions that give one row's map as it is (first, max_by, lag …). A column may hold one further down in the
 * plan: whatever is met of these is noted in `asked`, and a second time around `answers` has what came of it.
 */
public class Reach extends scala.runtime.AbstractPartialFunction {
  public final LinkedHashSet asked = new LinkedHashSet(); // of KeyAccess.Wanted
  private final HashMap answers; // KeyAccess.Wanted to Attribute

  public Reach(HashMap answers) {
    this.answers = answers;
  }

  /** Note what the accesses of an expression ask of columns. */
  public void ask(Expression expression) {
    KeyAccess access = KeyAccess.of(expression);
    if (access != null) {
      find(access.map, new ArrayList(), access);
    }
    Seq children = expression.children();
    for (int i = 0; i < children.size(); i++) {
      ask((Expression) children.apply(i));
    }
  }

  /* As a function it replaces every expression for which there is something better. */
  public boolean isDefinedAt(Object node) {
    return better((Expression) node) != null;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    Expression found = better((Expression) node);
    return found != null ? found : otherwise.apply(node);
  }

  public Expression better(Expression expression) {
    if (expression instanceof IsNotNull && ((IsNotNull) expression).child() instanceof ShreddedMap) {
      return ((ShreddedMap) ((IsNotNull) expression).child()).isThere();
    }
    if (expression instanceof IsNull && ((IsNull) expression).child() instanceof ShreddedMap) {
      return new Not(((ShreddedMap) ((IsNull) expression).child()).isThere());
    }
    KeyAccess access = KeyAccess.of(expression);
    return access == null ? null : find(access.map, new ArrayList(), access);
  }

  /** The answer to an access on what `path` leads to in an expression; null when there is no shredded map behind it. */
  public Expression find(Expression in, ArrayList path, KeyAccess access) {
    if (in instanceof ShreddedMap) {
      return ((ShreddedMap) in).answer(access.key, access.contains);
    }
    if (in instanceof AttributeReference) {
      KeyAccess.Wanted wanted = access.wanted((AttributeReference) in, path);
      asked.add(wanted);
      return (Expression) answers.get(wanted);
    }
    if (in instanceof GetStructField) {
      ArrayList longer = new ArrayList(path);
      longer.add(0, Integer.valueOf(((GetStructField) in).ordinal()));
      return find(((GetStructField) in).child(), longer, access);
    }
    if (in instanceof CreateNamedStruct && !path.isEmpty()) {
      int place = ((Integer) path.get(0)).intValue();
      Expression field = (Expression) ((CreateNamedStruct) in).valExprs().apply(place);
      return find(field, new ArrayList(path.subList(1, path.size())), access);
    }
    if (in instanceof If || in instanceof CaseWhen) {
      return inBranches(in, path, access);
    }
    if (in instanceof AggregateExpression) {
      return inAggregate((AggregateExpression) in, path, access);
    }
    return in instanceof WindowExpression ? inWindow((WindowExpression) in, path, access) : null;
  }

  private Expression inBranches(Expression in, ArrayList path, KeyAccess access) {
    Seq children = in.children();
    ArrayList changed = new ArrayList();
    boolean any = false;
    for (int i = 0; i < children.size(); i++) {
      Expression child = (Expression) children.apply(i);
      boolean isValue = in instanceof If ? i > 0 : i % 2 == 1 || i == children.size() - 1;
      Expression found = isValue ? find(child, path, access) : null;
      any |= found != null;
      changed.add(!isValue ? child : found != null ? found : look(child, path, access));
    }
    return !any ? null : withoutNeedlessTest((Expression) in.withNewChildren(PlannedFiles.seq(changed)));
  }

  /** An access on something that is no shredded map. */
  public static Expression look(Expression in, ArrayList path, KeyAccess access) {
    Expression plain = access.on(in, path);
    return in instanceof Literal && ((Literal) in).value() == null ? Literal.create(null, plain.dataType()) : plain;
  }

  /** A field of s where s is not null is just the field of s, and as such can be pushed down to files. */
  private static Expression withoutNeedlessTest(Expression found) {
    if (!(found instanceof If) || !(((If) found).predicate() instanceof IsNull)) {
      return found;
    }
    Expression tested = ((IsNull) ((If) found).predicate()).child();
    Expression whenNull = ((If) found).trueValue();
    Expression field = ((If) found).falseValue();
    while (field instanceof GetStructField && !field.semanticEquals(tested)) {
      field = ((GetStructField) field).child();
    }
    boolean needless = whenNull instanceof Literal && ((Literal) whenNull).value() == null && field.semanticEquals(tested);
    return needless ? ((If) found).falseValue() : found;
  }

  /** Aggregates that take the map of one row; those that skip null maps are not among them, for the key may be null too. */
  private Expression inAggregate(AggregateExpression in, ArrayList path, KeyAccess access) {
    AggregateFunction function = in.aggregateFunction();
    boolean takesOne = function instanceof First && !((First) function).ignoreNulls()
        || function instanceof Last && !((Last) function).ignoreNulls()
        || (function instanceof MaxBy || function instanceof MinBy) && function.children().size() == 2;
    if (!takesOne || in.isDistinct()) {
      return null;
    }
    Expression found = find((Expression) function.children().apply(0), path, access);
    if (found == null) {
      return null;
    }
    return ((AggregateFunction) withFirst(function, found)).toAggregateExpression(false, in.filter());
  }

  private Expression inWindow(WindowExpression in, ArrayList path, KeyAccess access) {
    Expression function = in.windowFunction();
    if (function instanceof AggregateExpression) {
      Expression found = inAggregate((AggregateExpression) function, path, access);
      return found == null ? null : new WindowExpression(found, in.windowSpec());
    }
    boolean takesOne = function instanceof Lag && !((Lag) function).ignoreNulls()
        || function instanceof Lead && !((Lead) function).ignoreNulls()
        || function instanceof NthValue && !((NthValue) function).ignoreNulls();
    Expression found = takesOne ? find((Expression) function.children().apply(0), path, access) : null;
    if (found == null) {
      return null;
    }
    Expression changed = withFirst(function, found);
    if (changed.children().size() == 3) { // what lag and lead give where there is no row
      ArrayList children = list(changed.children());
      Expression other = (Expression) children.get(2);
      Expression inOther = find(other, path, access);
      children.set(2, inOther != null ? inOther : look(other, path, access));
      changed = (Expression) changed.withNewChildren(PlannedFiles.seq(children));
    }
    return new WindowExpression(changed, in.windowSpec());
  }

  private static Expression withFirst(Expression function, Expression first) {
    ArrayList children = list(function.children());
    children.set(0, first);
    return (Expression) function.withNewChildren(PlannedFiles.seq(children));
  }

  public static ArrayList list(Seq elements) {
    ArrayList found = new ArrayList();
    for (int i = 0; i < elements.size(); i++) {
      found.add(elements.apply(i));
    }
    return found;
  }
}
