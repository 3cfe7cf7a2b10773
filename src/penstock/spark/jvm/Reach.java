package io.penstock;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Lag;
import org.apache.spark.sql.catalyst.expressions.Lead;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NthValue;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.First;
import org.apache.spark.sql.catalyst.expressions.aggregate.Last;
import org.apache.spark.sql.catalyst.expressions.aggregate.MaxBy;
import org.apache.spark.sql.catalyst.expressions.aggregate.MinBy;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.Seq;

/**
 * Finds the shredded map behind an access: through structures that are made and taken apart again, through branches,
 * and through functions that give one row's map as it is (first, max_by, lag …). A column may hold one further down in
 * the plan: whatever is met of these is noted in `questions`, and a second time around `answers` has what came of it.
 */
public class Reach extends Change {
  public final LinkedHashSet<KeyAccess.Wanted> questions = new LinkedHashSet();
  private final HashMap<KeyAccess.Wanted, Attribute> answers;

  public Reach(HashMap<KeyAccess.Wanted, Attribute> answers) {
    this.answers = answers;
  }

  /** What the accesses in some expressions ask of columns. */
  public static Reach asking(Seq expressions) {
    Reach asking = new Reach(new HashMap());
    asking.ask(expressions);
    return asking;
  }

  private void ask(Seq expressions) {
    for (Expression expression : Seqs.list(expressions)) {
      KeyAccess access = KeyAccess.of(expression);
      if (access != null) {
        find(access.map, new ArrayList(), access);
      }
      ask(expression.children());
    }
  }

  /** Something better for an expression, where there is. */
  public Object change(Object node) {
    Expression expression = (Expression) node;
    if (expression instanceof If || expression instanceof CaseWhen) {
      return ShreddedMap.mayBeIn(expression) ? withoutTest(expression) : null;
    }
    KeyAccess access = KeyAccess.of(expression);
    Expression answer = access == null ? null : find(access.map, new ArrayList(), access);
    return answer == null ? null : KeyAccess.inPlaceOf(expression, answer);
  }

  /** The answer to an access on what `path` leads to in an expression; null when there is no shredded map behind it. */
  public Expression find(Expression in, List<Integer> path, KeyAccess access) {
    if (in instanceof ShreddedMap) {
      return access.of((ShreddedMap) in);
    }
    if (in instanceof AttributeReference) {
      KeyAccess.Wanted wanted = new KeyAccess.Wanted(((AttributeReference) in).exprId(), path, access);
      questions.add(wanted);
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
      return find(field, path.subList(1, path.size()), access);
    }
    if ((in instanceof If || in instanceof CaseWhen) && in.deterministic()) {
      return inBranches(in, path, access);
    }
    if (in instanceof AggregateExpression) {
      return inAggregate((AggregateExpression) in, path, access);
    }
    return in instanceof WindowExpression ? inWindow((WindowExpression) in, path, access) : null;
  }

  private Expression inBranches(Expression in, List<Integer> path, KeyAccess access) {
    Seq children = in.children();
    ArrayList values = new ArrayList();
    for (int i = 0; i < children.size(); i++) {
      boolean isValue = in instanceof If ? i > 0 : i % 2 == 1 || i == children.size() - 1;
      values.add(isValue ? children.apply(i) : null);
    }
    List changed = findAll(values, path, access);
    if (changed == null) {
      return null;
    }
    for (int i = 0; i < children.size(); i++) {
      changed.set(i, values.get(i) == null ? children.apply(i) : changed.get(i));
    }
    return withoutNeedlessTest((Expression) in.withNewChildren(Seqs.seqOf(changed)));
  }

  /** An answer for each expression, by a look into the map where none is shredded; null when this is so everywhere. */
  public List findAll(List<Expression> expressions, List<Integer> path, KeyAccess access) {
    ArrayList<Expression> answers = new ArrayList();
    DataType type = null;
    for (Expression one : expressions) {
      Expression answer = one == null ? null : find(one, path, access);
      type = answer == null ? type : answer.dataType();
      answers.add(answer);
    }
    if (type == null) {
      return null;
    }
    for (int i = 0; i < answers.size(); i++) {
      if (answers.get(i) == null && expressions.get(i) != null) {
        answers.set(i, look((Expression) expressions.get(i), path, access, type));
      }
    }
    return answers;
  }

  private static Expression look(Expression in, List<Integer> path, KeyAccess access, DataType type) {
    return isNull(in) ? Literal.create(null, type) : access.on(in, path);
  }

  /** Whether this is nothing but null, or something that is taken out of it. */
  private static boolean isNull(Expression expression) {
    return expression instanceof Literal
        ? ((Literal) expression).value() == null
        : (expression instanceof GetStructField || expression instanceof Cast)
            && isNull((Expression) expression.children().apply(0));
  }

  /** What is left of branches that have answers in them and do not matter then; Spark pushes accesses into them. */
  private Expression withoutTest(Expression branches) {
    Expression inside = below(branches);
    Expression simpler = withoutNeedlessTest(inside);
    return simpler == inside ? null : simpler;
  }

  /** A field of s where s is not null, else null, is just the field of s, and as such can be pushed down to files. */
  private static Expression withoutNeedlessTest(Expression branches) {
    Seq parts = branches.children(); // a test, what is true then, what is true otherwise; a CASE may have more or less
    if (parts.size() > 3 || !(parts.apply(0) instanceof IsNull || parts.apply(0) instanceof IsNotNull)) {
      return branches;
    }
    Expression tested = (Expression) ((Expression) parts.apply(0)).children().apply(0);
    int there = parts.apply(0) instanceof IsNull ? 2 : 1;
    if (there >= parts.size() || parts.size() == 3 && !isNull((Expression) parts.apply(3 - there))) {
      return branches;
    }
    Expression value = (Expression) parts.apply(there);
    return isNullWith(tested, value) ? value : branches;
  }

  private static boolean isNullWith(Expression tested, Expression value) {
    boolean isNull = value.semanticEquals(tested);
    for (int i = 0; !isNull && i < value.children().size() && value.nullIntolerant(); i++) {
      isNull = isNullWith(tested, (Expression) value.children().apply(i));
    }
    return isNull;
  }

  /** Aggregates that take the map of one row; not those that skip null maps, for the key may be null in others. */
  private Expression inAggregate(AggregateExpression in, List<Integer> path, KeyAccess access) {
    AggregateFunction function = in.aggregateFunction();
    boolean takesOne = function instanceof First && !((First) function).ignoreNulls()
        || function instanceof Last && !((Last) function).ignoreNulls()
        || (function instanceof MaxBy || function instanceof MinBy) && function.children().size() == 2;
    if (!takesOne || in.isDistinct()) {
      return null;
    }
    Expression answer = find((Expression) function.children().apply(0), path, access);
    if (answer == null) {
      return null;
    }
    return ((AggregateFunction) withFirst(function, answer)).toAggregateExpression(false, in.filter());
  }

  private Expression inWindow(WindowExpression in, List<Integer> path, KeyAccess access) {
    Expression function = in.windowFunction();
    if (function instanceof AggregateExpression) {
      Expression answer = inAggregate((AggregateExpression) function, path, access);
      return answer == null ? null : new WindowExpression(answer, in.windowSpec());
    }
    boolean takesOne = function instanceof Lag && !((Lag) function).ignoreNulls()
        || function instanceof Lead && !((Lead) function).ignoreNulls()
        || function instanceof NthValue && !((NthValue) function).ignoreNulls();
    Expression answer = takesOne ? find((Expression) function.children().apply(0), path, access) : null;
    if (answer == null) {
      return null;
    }
    Expression changed = withFirst(function, answer);
    if (changed.children().size() == 3) { // what lag and lead give where there is no row
      ArrayList children = new ArrayList(Seqs.list(changed.children()));
      Expression other = (Expression) children.get(2);
      Expression inOther = find(other, path, access);
      children.set(2, inOther != null ? inOther : look(other, path, access, answer.dataType()));
      changed = (Expression) changed.withNewChildren(Seqs.seqOf(children));
    }
    return new WindowExpression(changed, in.windowSpec());
  }

  private static Expression withFirst(Expression function, Expression first) {
    ArrayList children = new ArrayList(Seqs.list(function.children()));
    children.set(0, first);
    return (Expression) function.withNewChildren(Seqs.seqOf(children));
  }
}
