package io.penstock;

import java.util.ArrayList;
import java.util.List;
import java.util.WeakHashMap;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StructType;

/**
 * Plans a scan once its filters have been pushed down and before joins are chosen: Spark then sees the size of the files
 * that are left instead of that of the table. The plan made here is the one the scan uses.
 */
public class PlanEarly extends Rule {
  public Object apply(Object plan) {
    return apply((TreeNode) plan);
  }

  public TreeNode apply(TreeNode plan) {
    LogicalPlan lowered = LowerMaps.in((LogicalPlan) plan);
    return lowered.transformDown(new DropMetadata()).transformDown(new Replace());
  }

  /** Takes `_metadata` out of scans of ours that offer it and are not asked: Spark would compute it for every row. */
  public static class DropMetadata extends Change {
    public Object change(Object node) {
      Project project = node instanceof Project ? (Project) node : null;
      Filter filter = project != null && project.child() instanceof Filter ? (Filter) project.child() : null;
      LogicalRelation scan = project == null ? null : Replace.relation(filter == null ? project.child() : filter.child());
      if (scan == null) {
        return null;
      }
      AttributeSet used = filter == null ? project.references() : project.references().$plus$plus(filter.references());
      ArrayList columns = new ArrayList();
      for (Attribute column : Seqs.list(scan.output())) {
        if (!column.metadata().contains("__metadata_col") || used.contains(column)) {
          columns.add(column);
        }
      }
      if (columns.size() == scan.output().size()) {
        return null;
      }
      LogicalPlan smaller = Copies.with(scan, 1, Seqs.seqOf(columns));
      return new Project(project.projectList(), filter == null ? smaller : new Filter(filter.condition(), smaller));
    }
  }

  public static class Replace extends Change {
    /** A scan of ours that has not been planned; null for anything else. */
    static LogicalRelation relation(Object node) {
      if (!(node instanceof LogicalRelation) || !(((LogicalRelation) node).relation() instanceof HadoopFsRelation)) {
        return null;
      }
      Object index = ((HadoopFsRelation) ((LogicalRelation) node).relation()).location();
      return index instanceof PenstockIndex && !((PenstockIndex) index).isPlanned() ? (LogicalRelation) node : null;
    }

    public Object change(Object node) {
      Filter filter = node instanceof Filter ? (Filter) node : null;
      LogicalRelation scan = relation(filter == null ? node : filter.child());
      if (scan == null) {
        return null;
      }
      return filter == null ? planned(scan, null) : new Filter(filter.condition(), planned(scan, filter.condition()));
    }

    /** The scan with its files; as it was when they cannot be had, for then the scan itself says why. */
    private static LogicalRelation planned(LogicalRelation scan, Expression condition) {
      HadoopFsRelation files = (HadoopFsRelation) scan.relation();
      ArrayList onPartitions = new ArrayList();
      ArrayList onData = new ArrayList();
      if (condition != null) {
        AttributeSet keys = columns(scan, files.partitionSchema());
        Expression named = (Expression) DataSourceStrategy$.MODULE$
            .normalizeExprs(Seqs.seq(condition), scan.output()).apply(0); // as the table spells them
        sort(named, keys, columns(scan, files.dataSchema()).$minus$minus(keys), onPartitions, onData);
      }
      PenstockIndex index;
      try {
        index = ((PenstockIndex) files.location()).planned(Seqs.seqOf(onPartitions), Seqs.seqOf(onData));
      } catch (RuntimeException error) {
        return scan;
      }
      HadoopFsRelation smaller = new HadoopFsRelation(
          index, files.partitionSchema(), files.dataSchema(), files.bucketSpec(), index.format(files.dataSchema()),
          files.options(), files.sparkSession());
      return (LogicalRelation) Copies.with(scan, 0, smaller);
    }

    private static AttributeSet columns(LogicalRelation scan, StructType schema) {
      ArrayList columns = new ArrayList();
      for (Attribute column : Seqs.list(scan.output())) {
        if (schema.getFieldIndex(column.name()).isDefined()) {
          columns.add(column);
        }
      }
      return AttributeSet$.MODULE$.apply((scala.collection.Iterable) Seqs.seqOf(columns));
    }

    /** Each conjunct to the partition filters or the data filters, in parts if need be, as Spark's own planning does. */
    private static void sort(
        Expression condition, AttributeSet keys, AttributeSet data, ArrayList onPartitions, ArrayList onData) {
      if (condition instanceof And) {
        sort(((And) condition).left(), keys, data, onPartitions, onData);
        sort(((And) condition).right(), keys, data, onPartitions, onData);
        return;
      }
      if (!condition.deterministic() || PlannedFiles.waits(condition)) {
        return;
      }
      onPartitions.addAll(within(condition, keys));
      if (condition.references().intersect(keys).nonEmpty()) {
        onData.addAll(within(condition, data));
      } else {
        onData.add(condition);
      }
    }

    private static List within(Expression condition, AttributeSet columns) {
      return Seqs.list(DataSourceStrategy$.MODULE$.extractPredicatesWithinOutputSet(condition, columns).toList());
    }
  }

  /** Makes the rule for a session. */
  public static class Builder extends scala.runtime.AbstractFunction1 {
    private static final WeakHashMap ATTACHED = new WeakHashMap();

    /** Inject the rules, once: a new session of the same Spark shares the extensions of the first. */
    public boolean attach(SparkSessionExtensions extensions) {
      synchronized (ATTACHED) {
        if (ATTACHED.put(extensions, Boolean.TRUE) != null) {
          return false;
        }
        extensions.injectOptimizerRule(new LakeRule.Builder());
        extensions.injectOptimizerRule(new HotKeys.Builder());
        extensions.injectPreCBORule(this);
        return true;
      }
    }

    public Object apply(Object session) {
      return new PlanEarly();
    }
  }
}
