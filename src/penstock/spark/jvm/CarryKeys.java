package io.penstock;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.DomainJoin;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Offset;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import scala.collection.immutable.Seq;

/**
 * Hands keys that an operator looks up down the plan, to the projection that makes the map out of its sidecars. That
 * one gets a column more for each key, and every operator on the way lets it through. Spark's own rules do the rest:
 * they drop the map that nobody uses any more, merge projections, and push filters down to the files.
 */
public class CarryKeys {
  private final LogicalPlan plan; // gives what it gave before, and more
  private final HashMap answers; // KeyAccess.Wanted to the Attribute of the plan that has it

  private CarryKeys(LogicalPlan plan, HashMap answers) {
    this.plan = plan;
    this.answers = answers;
  }

  /** The plan with the same columns as before, its accesses answered from sidecars where they can be. */
  public static LogicalPlan in(LogicalPlan plan) {
    return only(carry(plan, new LinkedHashSet()).plan, plan.output(), new ArrayList());
  }

  private static CarryKeys carry(LogicalPlan plan, LinkedHashSet wanted) {
    if (!ShreddedMap.mayBeIn(plan) || plan.children().isEmpty()) {
      return new CarryKeys(plan, new HashMap());
    }
    LogicalPlan node = Subqueries.in(plan);
    if (node instanceof Union) {
      return union(node, wanted);
    }
    if (node instanceof Expand) {
      return expand((Expand) node, wanted);
    }
    if (node instanceof Generate) {
      return generate((Generate) node, wanted);
    }
    if (node instanceof Project || node instanceof Aggregate || node instanceof Window) {
      return define(node, wanted);
    }
    return lets(node) ? pass(node, wanted) : stop(node);
  }

  /** Operators whose columns are those of their children. */
  private static boolean lets(LogicalPlan node) {
    return node instanceof Filter || node instanceof Join || node instanceof Sort || node instanceof GlobalLimit
        || node instanceof LocalLimit || node instanceof Offset || node instanceof Sample
        || node instanceof SubqueryAlias || node instanceof RepartitionOperation || node instanceof RebalancePartitions
        || node instanceof DomainJoin;
  }

  private static CarryKeys pass(LogicalPlan node, LinkedHashSet wanted) {
    Reach asking = asks(node);
    asking.questions.addAll(wanted);
    CarryKeys below = below(node, asking.questions);
    LogicalPlan changed = replace(below.plan, below.answers);
    return new CarryKeys(changed, passed(changed, below.answers, wanted));
  }

  /** What is wanted and came from below, as the operator gives it: an outer join makes it nullable. */
  private static HashMap passed(LogicalPlan node, HashMap answers, LinkedHashSet wanted) {
    HashMap passed = new HashMap();
    for (Iterator all = wanted.iterator(); all.hasNext();) {
      Object one = all.next();
      Attribute below = (Attribute) answers.get(one);
      Attribute here = below == null ? null : attribute(node.output(), below.exprId());
      if (here != null) {
        passed.put(one, here);
      }
    }
    return passed;
  }

  /** An operator of which nothing is known: what is below it is done by itself. */
  private static CarryKeys stop(LogicalPlan node) {
    ArrayList children = new ArrayList();
    for (int i = 0; i < node.children().size(); i++) {
      children.add(in((LogicalPlan) node.children().apply(i)));
    }
    return new CarryKeys(replace(over(node, children), new HashMap()), new HashMap());
  }

  /** Each child is asked for what is wanted of its columns. */
  private static CarryKeys below(LogicalPlan node, LinkedHashSet wanted) {
    ArrayList children = new ArrayList();
    HashMap answers = new HashMap();
    for (int i = 0; i < node.children().size(); i++) {
      LogicalPlan child = (LogicalPlan) node.children().apply(i);
      CarryKeys done = carry(child, of(child, wanted));
      children.add(done.plan);
      answers.putAll(done.answers);
    }
    return new CarryKeys(over(node, children), answers);
  }

  /** The operator over other children; itself, as Spark has it, when they are the same. */
  private static LogicalPlan over(LogicalPlan node, ArrayList children) {
    return (LogicalPlan) node.withNewChildren(PlannedFiles.seq(children));
  }

  private static LinkedHashSet of(LogicalPlan plan, LinkedHashSet wanted) {
    LinkedHashSet own = new LinkedHashSet();
    for (Iterator all = wanted.iterator(); all.hasNext();) {
      KeyAccess.Wanted one = (KeyAccess.Wanted) all.next();
      if (attribute(plan.output(), one.id) != null) {
        own.add(one);
      }
    }
    return own;
  }

  /** Operators that define columns: a column more for each key that is wanted of one of theirs. */
  private static CarryKeys define(LogicalPlan node, LinkedHashSet wanted) {
    Reach asking = asks(node);
    LinkedHashMap sources = new LinkedHashMap(); // KeyAccess.Wanted to the Expression in which its map is
    for (Iterator all = wanted.iterator(); all.hasNext();) {
      KeyAccess.Wanted one = (KeyAccess.Wanted) all.next();
      Expression source = source(node, one.id);
      if (source != null) {
        sources.put(one, source);
        asking.find(source, one.path, one.access);
      } else {
        asking.questions.add(one); // a window's child may have it
      }
    }
    CarryKeys below = below(node, asking.questions);
    HashMap answers = node instanceof Window ? passed(below.plan, below.answers, wanted) : new HashMap();
    Reach reach = new Reach(below.answers);
    LinkedHashMap more = new LinkedHashMap(); // each once, by what it is
    for (Iterator all = sources.keySet().iterator(); all.hasNext();) {
      KeyAccess.Wanted one = (KeyAccess.Wanted) all.next();
      Expression answer = reach.find((Expression) sources.get(one), one.path, one.access);
      if (answer != null) {
        if (!more.containsKey(answer)) {
          more.put(answer, answer instanceof Attribute ? answer : alias(answer, one));
        }
        Object column = more.get(answer);
        answers.put(one, ((NamedExpression) column).toAttribute());
      }
    }
    LogicalPlan changed = node instanceof Aggregate
        ? aggregate((Aggregate) below.plan, reach)
        : replace(below.plan, below.answers);
    return new CarryKeys(with(changed, new ArrayList(more.values())), answers);
  }

  /** The expression behind a column that an operator defines, if keys may be taken out of it there. */
  private static Expression source(LogicalPlan node, ExprId id) {
    Seq defined = node instanceof Project ? ((Project) node).projectList()
        : node instanceof Window ? ((Window) node).windowExpressions() : ((Aggregate) node).aggregateExpressions();
    for (int i = 0; i < defined.size(); i++) {
      NamedExpression column = (NamedExpression) defined.apply(i);
      if (column.exprId().equals(id)) {
        Expression behind = column instanceof Alias ? ((Alias) column).child() : (Expression) column;
        boolean fits = node instanceof Project
            || (node instanceof Window ? behind instanceof WindowExpression : behind instanceof AggregateExpression);
        return fits ? behind : null;
      }
    }
    return null;
  }

  private static LogicalPlan with(LogicalPlan node, ArrayList more) {
    if (more.isEmpty()) {
      return node;
    }
    if (node instanceof Project) {
      return new Project(joined(((Project) node).projectList(), more), ((Project) node).child());
    }
    if (node instanceof Window) {
      Window window = (Window) node;
      return window.copy(
          joined(window.windowExpressions(), more), window.partitionSpec(), window.orderSpec(), window.child(),
          window.hint());
    }
    Aggregate group = (Aggregate) node;
    return group.copy(
        group.groupingExpressions(), joined(group.aggregateExpressions(), more), group.child(), group.hint());
  }

  /** A key of a map that is grouped by stays as it is outside of aggregate functions: a group has the map only. */
  private static LogicalPlan aggregate(Aggregate group, Reach reach) {
    ArrayList keys = new ArrayList();
    boolean same = true;
    for (int i = 0; i < group.groupingExpressions().size(); i++) {
      Expression key = (Expression) group.groupingExpressions().apply(i);
      keys.add(key.transform(reach));
      same &= keys.get(i) == key;
    }
    ArrayList columns = new ArrayList();
    for (int i = 0; i < group.aggregateExpressions().size(); i++) {
      Expression column = (Expression) group.aggregateExpressions().apply(i);
      columns.add(new Grouped(group, reach).apply(column));
      same &= columns.get(i) == column;
    }
    return same ? group : group.copy(PlannedFiles.seq(keys), PlannedFiles.seq(columns), group.child(), group.hint());
  }

  /** Every branch gives the keys, in one order; one that has no shredded map looks them up in its own. */
  private static CarryKeys union(LogicalPlan union, LinkedHashSet wanted) {
    ArrayList branches = new ArrayList();
    LinkedHashSet answered = new LinkedHashSet();
    for (int i = 0; i < union.children().size(); i++) {
      LogicalPlan child = (LogicalPlan) union.children().apply(i);
      LinkedHashSet here = new LinkedHashSet();
      for (Iterator all = wanted.iterator(); all.hasNext();) {
        here.add(inBranch((KeyAccess.Wanted) all.next(), union, child));
      }
      CarryKeys done = carry(child, here);
      branches.add(done);
      for (Iterator all = wanted.iterator(); all.hasNext();) {
        KeyAccess.Wanted one = (KeyAccess.Wanted) all.next();
        if (done.answers.containsKey(inBranch(one, union, child))) {
          answered.add(one);
        }
      }
    }
    ArrayList children = new ArrayList();
    for (int i = 0; i < branches.size(); i++) {
      LogicalPlan child = (LogicalPlan) union.children().apply(i);
      CarryKeys done = (CarryKeys) branches.get(i);
      ArrayList more = new ArrayList();
      for (Iterator all = answered.iterator(); all.hasNext();) {
        KeyAccess.Wanted one = inBranch((KeyAccess.Wanted) all.next(), union, child);
        Expression answer = (Expression) done.answers.get(one);
        more.add(alias(answer != null ? answer : one.access.on(attribute(child.output(), one.id), one.path), one));
      }
      children.add(only(done.plan, child.output(), more));
    }
    LogicalPlan changed = over(union, children);
    HashMap answers = new HashMap();
    int place = union.output().size();
    for (Iterator all = answered.iterator(); all.hasNext(); place++) {
      answers.put(all.next(), changed.output().apply(place));
    }
    return new CarryKeys(changed, answers);
  }

  private static KeyAccess.Wanted inBranch(KeyAccess.Wanted wanted, LogicalPlan union, LogicalPlan child) {
    for (int i = 0; i < union.output().size(); i++) {
      if (((Attribute) union.output().apply(i)).exprId().equals(wanted.id)) {
        return wanted.of(((Attribute) child.output().apply(i)).exprId());
      }
    }
    throw new IllegalStateException("no column " + wanted.id + " in " + union);
  }

  /** An Expand gives each row several times, with columns of its own: the key of each of those rows. */
  private static CarryKeys expand(Expand expand, LinkedHashSet wanted) {
    Reach asking = asks(expand);
    for (Iterator all = wanted.iterator(); all.hasNext();) {
      KeyAccess.Wanted one = (KeyAccess.Wanted) all.next();
      for (int row = 0; row < expand.projections().size(); row++) {
        asking.find(cell(expand, row, one), one.path, one.access);
      }
    }
    CarryKeys below = below(expand, asking.questions);
    Reach reach = new Reach(below.answers);
    Expand changed = (Expand) replace(below.plan, below.answers);
    ArrayList rows = new ArrayList();
    for (int row = 0; row < expand.projections().size(); row++) {
      rows.add(Reach.list((Seq) changed.projections().apply(row)));
    }
    ArrayList columns = new ArrayList();
    HashMap answers = new HashMap();
    for (Iterator all = wanted.iterator(); all.hasNext();) {
      KeyAccess.Wanted one = (KeyAccess.Wanted) all.next();
      ArrayList cells = new ArrayList();
      for (int row = 0; row < rows.size(); row++) {
        cells.add(cell(expand, row, one));
      }
      cells = reach.findAll(cells, one.path, one.access);
      if (cells != null) {
        for (int row = 0; row < rows.size(); row++) {
          ((ArrayList) rows.get(row)).add(cells.get(row));
        }
        Attribute column = alias((Expression) cells.get(0), one).toAttribute().withNullability(true);
        columns.add(column);
        answers.put(one, column);
      }
    }
    if (columns.isEmpty()) {
      return new CarryKeys(changed, answers);
    }
    for (int row = 0; row < rows.size(); row++) {
      rows.set(row, PlannedFiles.seq((ArrayList) rows.get(row)));
    }
    Expand more = new Expand(PlannedFiles.seq(rows), joined(changed.output(), columns), changed.child());
    return new CarryKeys(more, answers);
  }

  private static Expression cell(Expand expand, int row, KeyAccess.Wanted wanted) {
    for (int i = 0; i < expand.output().size(); i++) {
      if (((Attribute) expand.output().apply(i)).exprId().equals(wanted.id)) {
        return (Expression) ((Seq) expand.projections().apply(row)).apply(i);
      }
    }
    throw new IllegalStateException("no column " + wanted.id + " in " + expand);
  }

  /** A Generate knows by their places which columns of its child it drops: what is new comes behind them. */
  private static CarryKeys generate(Generate generate, LinkedHashSet wanted) {
    Reach asking = asks(generate);
    asking.questions.addAll(wanted);
    LogicalPlan child = generate.child();
    CarryKeys done = carry(child, of(child, asking.questions));
    LogicalPlan ordered = only(done.plan, child.output(), new ArrayList(new LinkedHashSet(done.answers.values())));
    ArrayList children = new ArrayList();
    children.add(ordered);
    LogicalPlan changed = replace(over(generate, children), done.answers);
    return new CarryKeys(changed, passed(changed, done.answers, wanted));
  }

  private static Reach asks(LogicalPlan node) {
    Reach asking = new Reach(new HashMap());
    Seq expressions = node.expressions();
    for (int i = 0; i < expressions.size(); i++) {
      asking.ask((Expression) expressions.apply(i));
    }
    return asking;
  }

  private static LogicalPlan replace(LogicalPlan node, HashMap answers) {
    return (LogicalPlan) node.transformExpressions(new Reach(answers));
  }

  /** Just these columns of a plan, and some more. */
  private static LogicalPlan only(LogicalPlan plan, Seq output, ArrayList more) {
    ArrayList columns = new ArrayList();
    boolean same = plan.output().size() == output.size() + more.size();
    for (int i = 0; i < output.size(); i++) {
      columns.add(attribute(plan.output(), ((Attribute) output.apply(i)).exprId()));
    }
    columns.addAll(more);
    for (int i = 0; i < columns.size() && same; i++) {
      same = ((NamedExpression) columns.get(i)).exprId().equals(((Attribute) plan.output().apply(i)).exprId());
    }
    return same ? plan : new Project(PlannedFiles.seq(columns), plan);
  }

  private static Attribute attribute(Seq output, ExprId id) {
    for (int i = 0; i < output.size(); i++) {
      if (((Attribute) output.apply(i)).exprId().equals(id)) {
        return (Attribute) output.apply(i);
      }
    }
    return null;
  }

  private static Alias alias(Expression child, KeyAccess.Wanted wanted) {
    Seq none = PlannedFiles.seq(new Object[0]);
    return new Alias(child, wanted.name(), NamedExpression$.MODULE$.newExprId(), none, scala.Option.empty(), none);
  }

  private static Seq joined(Seq first, ArrayList more) {
    ArrayList all = Reach.list(first);
    all.addAll(more);
    return PlannedFiles.seq(all);
  }

  /** Replaces what is inside of aggregate functions, over them, or what is grouped by itself. */
  public static class Grouped extends scala.runtime.AbstractFunction1 {
    private final Aggregate group;
    private final Reach reach;

    Grouped(Aggregate group, Reach reach) {
      this.group = group;
      this.reach = reach;
    }

    public Object apply(Object node) {
      Expression expression = (Expression) node;
      KeyAccess access = KeyAccess.of(expression);
      if (expression instanceof AggregateExpression || isKey(expression)
          || access != null && overAggregate(access.map)) {
        return expression.transform(reach);
      }
      return expression.mapChildren(this);
    }

    private boolean isKey(Expression expression) {
      for (int i = 0; i < group.groupingExpressions().size(); i++) {
        if (((Expression) group.groupingExpressions().apply(i)).semanticEquals(expression)) {
          return true;
        }
      }
      return false;
    }

    private static boolean overAggregate(Expression map) {
      while (map instanceof org.apache.spark.sql.catalyst.expressions.GetStructField) {
        map = (Expression) map.children().apply(0);
      }
      return map instanceof AggregateExpression;
    }
  }

  /** Subqueries that become joins only later: what conditions look up in their maps is asked of their plans. */
  public static class Subqueries extends scala.runtime.AbstractPartialFunction {
    static LogicalPlan in(LogicalPlan node) {
      return node.subqueries().isEmpty() ? node : (LogicalPlan) node.transformExpressions(new Subqueries());
    }

    public boolean isDefinedAt(Object node) {
      return node instanceof SubqueryExpression;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) {
        return otherwise.apply(node);
      }
      SubqueryExpression subquery = (SubqueryExpression) node;
      LogicalPlan plan = (LogicalPlan) subquery.plan();
      Reach asking = new Reach(new HashMap());
      for (int i = 0; i < subquery.children().size(); i++) {
        asking.ask((Expression) subquery.children().apply(i));
      }
      LinkedHashSet wanted = of(plan, asking.questions);
      CarryKeys done = wanted.isEmpty() ? null : carry(plan, wanted);
      if (done == null || done.answers.isEmpty()) {
        return subquery;
      }
      ArrayList more = new ArrayList(new LinkedHashSet(done.answers.values()));
      Expression changed = (Expression) subquery.withNewPlan(only(done.plan, plan.output(), more));
      return changed.mapChildren(new Reach.Each(new Reach(done.answers)));
    }
  }
}
