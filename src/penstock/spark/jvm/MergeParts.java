package io.penstock;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import scala.collection.immutable.Seq;

/**
 * A MERGE as Spark has planned it, taken apart again, so that it can be done without a join: its source, keys and
 * clauses. What depends on the source alone becomes a column that Spark computes of it; the rest is for Python, which
 * knows columns of the target as `t` and their name, and those of the source as `s` and their place.
 *
 * Nothing is known of merges with rows that the source does not meet, of keys that are not columns of the target, of
 * subqueries in clauses, and of what is not deterministic.
 */
public class MergeParts {
  private final LakeTable table;
  private final HashMap values = new HashMap(); // of the nodes above the join, by the ids of their columns
  private final HashMap places = new HashMap(); // of what is computed of the source
  private final ArrayList computed = new ArrayList();
  private final LinkedHashMap description = new LinkedHashMap();
  private LogicalPlan source;
  private DataSourceV2Relation target;

  private MergeParts(LakeTable table) {
    this.table = table;
  }

  /** The parts of a merge into a table; null where something is not known of it. */
  public static MergeParts of(LogicalPlan plan, LakeTable table, String kind) {
    MergeParts parts = new MergeParts(table);
    if (!kind.equals("merge") && !kind.equals("insert")) {
      return null;
    }
    try {
      parts.take(plan, kind.equals("merge"));
      return parts;
    } catch (RuntimeException reason) { // `NotKnown`, or a plan that is like no other: then Spark knows more of it
      return null;
    }
  }

  /** What has to be known of the rows of the source. */
  public LogicalPlan source() {
    return source;
  }

  /** The columns that are computed of the source, as `s0`, `s1` and so on. */
  public Seq columns() {
    ArrayList columns = new ArrayList();
    for (int i = 0; i < computed.size(); i++) {
      columns.add(alias((Expression) computed.get(i), "s" + i));
    }
    return Seqs.seqOf(columns);
  }

  /** Keys, further conditions and clauses, as Python reads them. */
  public Map description() {
    return description;
  }

  private void take(LogicalPlan plan, boolean isMerge) {
    ArrayList above = new ArrayList();
    LogicalPlan below = belowProjects(plan, above);
    MergeRows rows = below instanceof MergeRows ? (MergeRows) below : null;
    ArrayList between = new ArrayList();
    Join join = join(rows == null ? below : belowProjects((LogicalPlan) rows.children().apply(0), between));
    known(rows == null ? !isMerge : rows.notMatchedBySourceInstructions().isEmpty());
    String kind = join.joinType().sql();
    boolean isAnti = kind.equals("LEFT ANTI");
    known(isAnti ? !isMerge : isMerge && (kind.equals("RIGHT OUTER") || kind.equals("INNER")));
    known(!kind.equals("INNER") || rows.notMatchedInstructions().isEmpty());
    source = isAnti ? join.left() : join.right();
    known(source.deterministic() && join.condition().isDefined());
    ArrayList conditions = new ArrayList(parts((Expression) join.condition().get()));
    takeTarget(isAnti ? join.right() : join.left(), conditions);
    takeConditions(conditions);
    inline(between);
    if (rows == null) {
      inline(above);
      description.put("matched", new ArrayList());
      description.put("not matched", Arrays.asList(clause(null, plan, false)));
    } else {
      description.put("matched", clauses(rows, rows.matchedInstructions(), above, plan, isMerge));
      description.put("not matched", clauses(rows, rows.notMatchedInstructions(), above, plan, isMerge));
    }
  }

  private static LogicalPlan belowProjects(LogicalPlan plan, ArrayList projects) {
    while (plan instanceof Project) {
      projects.add(0, plan); // the lowest comes first
      plan = (LogicalPlan) plan.children().apply(0);
    }
    return plan;
  }

  private static Join join(LogicalPlan plan) {
    known(plan instanceof Join);
    return (Join) plan;
  }

  /** The table that is written; what filters it is a condition on rows that meet. */
  private void takeTarget(LogicalPlan plan, ArrayList conditions) {
    while (plan instanceof Project || plan instanceof Filter || plan instanceof SubqueryAlias) {
      if (plan instanceof Filter) {
        conditions.addAll(parts(((Filter) plan).condition()));
      }
      plan = (LogicalPlan) plan.children().apply(0);
    }
    LakeTable own = LakeRule.table(plan);
    known(own != null && own.name().equals(table.name()) && own.isSameVersion(table));
    target = (DataSourceV2Relation) plan;
  }

  /** Equalities of a column with what is computed of the source are keys; a key is NULL where the source alone decides. */
  private void takeConditions(ArrayList conditions) {
    LinkedHashMap keys = new LinkedHashMap();
    ArrayList others = new ArrayList();
    Expression ofSource = null;
    for (Object each : conditions) {
      Expression condition = checked((Expression) each);
      Expression[] pair = key(condition);
      if (pair != null && !keys.containsKey(targetName((AttributeReference) pair[0]))) {
        keys.put(targetName((AttributeReference) pair[0]), pair[1]);
      } else if (isOfTarget(condition)) {
        others.add(condition);
      } else {
        ofSource = ofSource == null ? condition : new And(ofSource, condition);
      }
    }
    known(!keys.isEmpty());
    ArrayList pairs = new ArrayList();
    for (Object each : keys.entrySet()) {
      Expression value = (Expression) ((Map.Entry) each).getValue();
      if (ofSource != null) {
        value = new If(ofSource, value, new Literal(null, value.dataType()));
      }
      pairs.add(Arrays.asList(((Map.Entry) each).getKey(), sourceColumn(value).name()));
    }
    description.put("keys", pairs);
    ArrayList texts = new ArrayList();
    for (Object each : others) {
      texts.add(text((Expression) each));
    }
    description.put("also", texts);
  }

  /** A column of the target and what it is equal to; null for other conditions. */
  private Expression[] key(Expression condition) {
    if (!(condition instanceof EqualTo)) {
      return null;
    }
    Expression left = ((EqualTo) condition).left();
    Expression right = ((EqualTo) condition).right();
    Expression own = left instanceof AttributeReference && isOfTarget(left) ? left : right;
    Expression other = own == left ? right : left;
    boolean isKey = own instanceof AttributeReference && isOfTarget(own) && !isOfTarget(other)
        && !other.references().isEmpty() && own.dataType().equals(other.dataType()) && isKey(own.dataType());
    return isKey ? new Expression[] {own, other} : null;
  }

  private static boolean isKey(DataType type) {
    return Narrowed.isKey(type) || type.equals(DataTypes.FloatType) || type.equals(DataTypes.DoubleType)
        || type.equals(DataTypes.BinaryType);
  }

  private List clauses(MergeRows rows, Seq instructions, ArrayList above, LogicalPlan plan, boolean isMerge) {
    ArrayList clauses = new ArrayList();
    for (Object each : Seqs.list(instructions)) {
      known(each instanceof MergeRows.Keep);
      MergeRows.Keep keep = (MergeRows.Keep) each;
      HashMap before = new HashMap(values);
      Seq output = rows.output();
      for (int i = 0; i < output.size(); i++) {
        values.put(((Attribute) output.apply(i)).exprId(), inlined((Expression) keep.output().apply(i)));
      }
      inline(above);
      clauses.add(clause(inlined(keep.condition()), plan, isMerge));
      values.clear();
      values.putAll(before);
    }
    return clauses;
  }

  /** A condition and the new values of columns; none, where rows are deleted. */
  private Map clause(Expression condition, LogicalPlan plan, boolean isMerge) {
    LinkedHashMap clause = new LinkedHashMap();
    boolean isAlways = condition == null || condition.equals(Literal.TrueLiteral());
    clause.put("where", isAlways ? null : text(checked(condition)));
    String[] names = table.schema.fieldNames();
    Seq output = plan.output();
    known(output.size() == names.length + (isMerge ? 3 : 0));
    int operation = LakeRule.ADDED;
    if (isMerge) { // before the columns; behind them are the file and the place
      Expression number = value((Attribute) output.apply(0));
      known(number instanceof Literal && ((Literal) number).value() instanceof Integer);
      operation = ((Integer) ((Literal) number).value()).intValue();
      known(operation >= LakeRule.REMOVED && operation <= LakeRule.ADDED);
    }
    clause.put("operation", Integer.valueOf(operation));
    LinkedHashMap assigned = new LinkedHashMap();
    for (int i = 0; i < names.length && operation != LakeRule.REMOVED; i++) {
      Attribute column = (Attribute) output.apply(i + (isMerge ? 1 : 0));
      known(!isMerge || column.name().equals(names[i]));
      Expression value = checked(value(column));
      if (!(value instanceof AttributeReference && isOfTarget(value) && targetName((AttributeReference) value).equals(names[i]))) {
        assigned.put(names[i], text(value));
      }
    }
    clause.put("values", assigned);
    return clause;
  }

  // Expressions over the two sides of the join

  /** What the columns of projections are, in terms of what is below all of them. */
  private void inline(ArrayList projects) {
    for (Object project : projects) {
      for (Object each : Seqs.list(((Project) project).projectList())) {
        if (each instanceof Alias) {
          values.put(((Alias) each).exprId(), inlined(((Alias) each).child()));
        }
      }
    }
  }

  private Expression inlined(Expression expression) {
    return (Expression) expression.transform(new Values(values));
  }

  private Expression value(Attribute column) {
    Expression value = (Expression) values.get(column.exprId());
    return value == null ? column : value;
  }

  private static Expression checked(Expression expression) {
    known(expression.deterministic() && !PlannedFiles.waits(expression));
    return expression;
  }

  private boolean isOfTarget(Expression expression) {
    return !expression.references().intersect(target.outputSet()).isEmpty();
  }

  /** The name that the table has for a column, which a statement may write in other case. */
  private String targetName(AttributeReference column) {
    for (Object own : Seqs.list(target.output())) {
      if (((Attribute) own).exprId().equals(column.exprId())) {
        String name = ((Attribute) own).name();
        known(Arrays.asList(table.schema.fieldNames()).contains(name));
        return name;
      }
    }
    throw new NotKnown();
  }

  private String text(Expression expression) {
    return Filters.toJson(named(expression, true));
  }

  /** An expression over columns as Python knows them; one without the target is computed by Spark. */
  private Expression named(Expression expression, boolean isWhole) {
    if (!isOfTarget(expression)) {
      return !isWhole && expression instanceof Literal ? expression : sourceColumn(expression);
    }
    if (expression instanceof AttributeReference) {
      return column("t" + targetName((AttributeReference) expression), expression);
    }
    ArrayList children = new ArrayList();
    for (Object child : Seqs.list(expression.children())) {
      children.add(named((Expression) child, false));
    }
    return (Expression) expression.withNewChildren(Seqs.seqOf(children));
  }

  private AttributeReference sourceColumn(Expression expression) {
    known(expression.references().subsetOf(source.outputSet()));
    Expression same = (Expression) expression.canonicalized();
    if (!places.containsKey(same)) {
      places.put(same, Integer.valueOf(computed.size()));
      computed.add(expression);
    }
    return column("s" + places.get(same), expression);
  }

  private static AttributeReference column(String name, Expression value) {
    return new AttributeReference(name, value.dataType(), value.nullable(), Metadata.empty(),
        NamedExpression$.MODULE$.newExprId(), Seqs.seq());
  }

  private static Alias alias(Expression value, String name) {
    return new Alias(value, name, NamedExpression$.MODULE$.newExprId(), Seqs.seq(), scala.Option.empty(), Seqs.seq());
  }

  private static List parts(Expression condition) {
    return Narrowed.parts(condition, new ArrayList());
  }

  private static void known(boolean isKnown) {
    if (!isKnown) {
      throw new NotKnown();
    }
  }

  /** Puts values in the place of columns. */
  private static class Values extends Change {
    private final Map values;

    Values(Map values) {
      this.values = values;
    }

    public Object change(Object node) {
      return node instanceof AttributeReference ? values.get(((NamedExpression) node).exprId()) : null;
    }
  }

  private static class NotKnown extends RuntimeException {
  }
}
