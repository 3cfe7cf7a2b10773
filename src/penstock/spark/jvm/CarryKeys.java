package io.penstock;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
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
  private final HashMap<KeyAccess.Wanted, Attribute> answers; // the columns of the plan that have them

  private CarryKeys(LogicalPlan plan, HashMap<KeyAccess.Wanted, Attribute> answers) {
    this.plan = plan;
    this.answers = answers;
  }

  /** The plan with the same columns as before, its accesses answered from sidecars where they can be. */
  public static LogicalPlan in(LogicalPlan plan) {
    return only(carry(plan, new LinkedHashSet()).plan, plan.output(), new ArrayList());
  }

  /** Of what is asked, a plan answers what is about its own columns. */
  private static CarryKeys carry(LogicalPlan plan, LinkedHashSet<KeyAccess.Wanted> asked) {
    if (!ShreddedMap.mayBeIn(plan) || plan.children().isEmpty()) {
      return new CarryKeys(plan, new HashMap());
    }
    LinkedHashSet<KeyAccess.Wanted> wanted = new LinkedHashSet();
    for (KeyAccess.Wanted one : asked) {
      if (place(plan.output(), one.id) >= 0) {
        wanted.add(one);
      }
    }
    LogicalPlan node = Subqueries.in(plan);
    if (node instanceof Union) {
      return union(node, wanted);
    }
    return isKnown(node) ? extend(node, wanted) : stop(node);
  }

  /** Operators with columns of their own, and those that give what their children give. */
  private static boolean isKnown(LogicalPlan node) {
    return node instanceof Project || node instanceof Aggregate || node instanceof Window || node instanceof Expand
        || node instanceof Filter || node instanceof Join || node instanceof Sort || node instanceof GlobalLimit
        || node instanceof LocalLimit || node instanceof Offset || node instanceof Sample || node instanceof Generate
        || node instanceof SubqueryAlias || node instanceof RepartitionOperation || node instanceof RebalancePartitions
        || node instanceof DomainJoin;
  }

  /** An operator of which nothing is known: what is below it is done by itself. */
  private static CarryKeys stop(LogicalPlan node) {
    ArrayList children = new ArrayList();
    for (LogicalPlan child : Seqs.list(node.children())) {
      children.add(in(child));
    }
    Reach within = new Reach(new HashMap());
    return new CarryKeys((LogicalPlan) over(node, children).transformExpressions(within), new HashMap());
  }

  /** Children are asked for what is wanted of their columns; one of the operator's own gets a column beside it. */
  private static CarryKeys extend(LogicalPlan node, LinkedHashSet<KeyAccess.Wanted> wanted) {
    Reach asking = Reach.asking(node.expressions());
    for (KeyAccess.Wanted one : wanted) {
      List sources = sources(node, one.id);
      asking.findAll(sources, one.path, one.access);
      if (sources.isEmpty()) {
        asking.questions.add(one); // a child may have it
      }
    }
    ArrayList children = new ArrayList();
    HashMap<KeyAccess.Wanted, Attribute> below = new HashMap();
    for (LogicalPlan child : Seqs.list(node.children())) {
      CarryKeys done = carry(child, asking.questions);
      // A Generate knows by their places which columns of its child it drops: what is new comes behind them.
      children.add(node instanceof Generate ? done.behind(child) : done.plan);
      below.putAll(done.answers);
    }
    LogicalPlan over = over(node, children);
    Reach reach = new Reach(below);
    LogicalPlan changed = (LogicalPlan) (node instanceof Aggregate
        ? over.mapExpressions(new Grouped((Aggregate) node, reach))
        : over.transformExpressions(reach));
    HashMap<KeyAccess.Wanted, Attribute> answers = new HashMap();
    LinkedHashMap<List, NamedExpression> more = new LinkedHashMap(); // each once, by what it is
    for (KeyAccess.Wanted one : wanted) {
      List sources = sources(node, one.id);
      List values = reach.findAll(sources, one.path, one.access);
      Attribute column = (Attribute) below.get(one);
      if (values != null) {
        more.putIfAbsent(values, column(node, (Expression) values.get(0), one));
        answers.put(one, ((NamedExpression) more.get(values)).toAttribute());
      } else if (column != null && sources.isEmpty() && place(changed.output(), column.exprId()) >= 0) {
        answers.put(one, attribute(changed.output(), column.exprId())); // an outer join makes it nullable
      }
    }
    return new CarryKeys(more.isEmpty() ? changed : with(changed, more), answers);
  }

  /** What stands behind an own column of an operator, in each row of an Expand; null where keys cannot be taken out. */
  private static List sources(LogicalPlan node, ExprId id) {
    if (node instanceof Expand) {
      ArrayList cells = new ArrayList();
      for (Seq row : Seqs.list(((Expand) node).projections())) {
        cells.add(row.apply(place(node.output(), id)));
      }
      return cells;
    }
    Seq defined = node instanceof Project ? ((Project) node).projectList()
        : node instanceof Window ? ((Window) node).windowExpressions()
        : node instanceof Aggregate ? ((Aggregate) node).aggregateExpressions() : Seqs.seq();
    int place = place(defined, id);
    if (place < 0) {
      return Collections.emptyList();
    }
    Object column = defined.apply(place);
    Object behind = column instanceof Alias ? ((Alias) column).child() : column;
    boolean takesKeys = behind instanceof WindowExpression || behind instanceof AggregateExpression;
    return Collections.singletonList(takesKeys || node instanceof Project ? behind : null);
  }

  private static NamedExpression column(LogicalPlan node, Expression value, KeyAccess.Wanted wanted) {
    if (node instanceof Expand) {
      return alias(value, wanted).toAttribute().withNullability(true); // other rows have other values
    }
    return value instanceof Attribute ? (NamedExpression) value : alias(value, wanted);
  }

  /** The operator with more columns, by their values. */
  private static LogicalPlan with(LogicalPlan node, LinkedHashMap<List, NamedExpression> more) {
    Seq columns = Seqs.seqOf(new ArrayList(more.values()));
    if (node instanceof Project) {
      return new Project((Seq) ((Project) node).projectList().appendedAll(columns), ((Project) node).child());
    }
    if (node instanceof Window) {
      Window window = (Window) node;
      return window.copy(
          (Seq) window.windowExpressions().appendedAll(columns), window.partitionSpec(), window.orderSpec(),
          window.child(), window.hint());
    }
    if (node instanceof Aggregate) {
      Aggregate group = (Aggregate) node;
      Seq all = (Seq) group.aggregateExpressions().appendedAll(columns);
      return group.copy(group.groupingExpressions(), all, group.child(), group.hint());
    }
    Expand expand = (Expand) node;
    ArrayList rows = new ArrayList();
    for (Seq row : Seqs.list(expand.projections())) {
      ArrayList cells = new ArrayList(Seqs.list(row));
      for (List values : more.keySet()) {
        cells.add(values.get(rows.size()));
      }
      rows.add(Seqs.seqOf(cells));
    }
    return new Expand(Seqs.seqOf(rows), (Seq) expand.output().appendedAll(columns), expand.child());
  }

  /** Every branch gives the keys, in one order; one that has no shredded map looks them up in its own. */
  private static CarryKeys union(LogicalPlan union, LinkedHashSet<KeyAccess.Wanted> wanted) {
    ArrayList<CarryKeys> branches = new ArrayList();
    LinkedHashSet<KeyAccess.Wanted> answered = new LinkedHashSet();
    for (LogicalPlan child : Seqs.list(union.children())) {
      LinkedHashSet<KeyAccess.Wanted> here = new LinkedHashSet();
      for (KeyAccess.Wanted one : wanted) {
        here.add(inBranch(one, union, child));
      }
      CarryKeys done = carry(child, here);
      branches.add(done);
      for (KeyAccess.Wanted one : wanted) {
        if (done.answers.containsKey(inBranch(one, union, child))) {
          answered.add(one);
        }
      }
    }
    ArrayList children = new ArrayList();
    for (CarryKeys done : branches) {
      LogicalPlan child = (LogicalPlan) union.children().apply(children.size());
      ArrayList more = new ArrayList();
      for (KeyAccess.Wanted each : answered) {
        KeyAccess.Wanted one = inBranch(each, union, child);
        Expression answer = (Expression) done.answers.get(one);
        more.add(alias(answer != null ? answer : one.access.on(attribute(child.output(), one.id), one.path), one));
      }
      children.add(only(done.plan, child.output(), more));
    }
    LogicalPlan changed = over(union, children);
    HashMap<KeyAccess.Wanted, Attribute> answers = new HashMap();
    for (KeyAccess.Wanted one : answered) {
      answers.put(one, changed.output().apply(union.output().size() + answers.size()));
    }
    return new CarryKeys(changed, answers);
  }

  private static KeyAccess.Wanted inBranch(KeyAccess.Wanted wanted, LogicalPlan union, LogicalPlan child) {
    Attribute column = (Attribute) child.output().apply(place(union.output(), wanted.id));
    return new KeyAccess.Wanted(column.exprId(), wanted.path, wanted.access);
  }

  /** The operator over other children; itself, as Spark has it, when they are the same. */
  private static LogicalPlan over(LogicalPlan node, ArrayList children) {
    return (LogicalPlan) node.withNewChildren(Seqs.seqOf(children));
  }

  /** The plan as it was before, and behind its columns those that have answers. */
  private LogicalPlan behind(LogicalPlan before) {
    return only(plan, before.output(), new LinkedHashSet(answers.values()));
  }

  /** Just these columns of a plan, and some more. */
  private static LogicalPlan only(LogicalPlan plan, Seq output, Collection more) {
    ArrayList columns = new ArrayList();
    for (Attribute column : Seqs.list(output)) {
      columns.add(attribute(plan.output(), column.exprId()));
    }
    columns.addAll(more);
    return columns.equals(Seqs.list(plan.output())) ? plan : new Project(Seqs.seqOf(columns), plan);
  }

  private static Attribute attribute(Seq output, ExprId id) {
    int place = place(output, id);
    return place < 0 ? null : (Attribute) output.apply(place);
  }

  private static int place(Seq columns, ExprId id) {
    for (int i = 0; i < columns.size(); i++) {
      if (((NamedExpression) columns.apply(i)).exprId().equals(id)) {
        return i;
      }
    }
    return -1;
  }

  private static Alias alias(Expression child, KeyAccess.Wanted wanted) {
    Seq none = Seqs.seq();
    return new Alias(child, wanted.name(), NamedExpression$.MODULE$.newExprId(), none, scala.Option.empty(), none);
  }

  /**
   * Replaces what is inside of aggregate functions, over them, or what is grouped by itself. A key of a map that is
   * grouped by stays as it is elsewhere: a group has the map only.
   */
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
      for (Expression key : Seqs.list(group.groupingExpressions())) {
        if (key.semanticEquals(expression)) {
          return true;
        }
      }
      return false;
    }

    private static boolean overAggregate(Expression map) {
      while (map instanceof GetStructField) {
        map = ((GetStructField) map).child();
      }
      return map instanceof AggregateExpression;
    }
  }

  /** Subqueries that become joins only later: what conditions look up in their maps is asked of their plans. */
  public static class Subqueries extends Change {
    static LogicalPlan in(LogicalPlan node) {
      return node.subqueries().isEmpty() ? node : (LogicalPlan) node.transformExpressions(new Subqueries());
    }

    public Object change(Object node) {
      if (!(node instanceof SubqueryExpression)) {
        return null;
      }
      SubqueryExpression subquery = (SubqueryExpression) node;
      LogicalPlan plan = (LogicalPlan) subquery.plan();
      CarryKeys done = carry(plan, Reach.asking(subquery.children()).questions);
      return done.answers.isEmpty()
          ? null
          : new Reach(done.answers).below((Expression) subquery.withNewPlan(done.behind(plan)));
    }
  }
}
