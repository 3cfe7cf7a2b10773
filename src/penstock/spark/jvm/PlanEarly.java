package io.penstock;

import java.util.ArrayList;
import java.util.HashSet;
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
import scala.Option;
import scala.collection.immutable.Seq;

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
  public static class DropMetadata extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof Project && isUnasked((Project) node);
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) {
        return otherwise.apply(node);
      }
      Project project = (Project) node;
      LogicalRelation scan = Replace.relation(below(project));
      LogicalPlan smaller = (LogicalPlan) Copies.with(scan, 1, without(scan));
      if (project.child() instanceof Filter) {
        smaller = new Filter(((Filter) project.child()).condition(), smaller);
      }
      return new Project(project.projectList(), smaller);
    }

    private static Object below(Project project) {
      return project.child() instanceof Filter ? ((Filter) project.child()).child() : project.child();
    }

    /** Whether there is a scan of ours below that offers `_metadata`, and nobody uses it. */
    private static boolean isUnasked(Project project) {
      LogicalRelation scan = Replace.relation(below(project));
      if (scan == null) {
        return false;
      }
      AttributeSet used = project.references();
      if (project.child() instanceof Filter) {
        used = used.$plus$plus(((Filter) project.child()).references());
      }
      boolean offered = false;
      Seq output = scan.output();
      for (int i = 0; i < output.size(); i++) {
        if (isMetadata(output.apply(i))) {
          offered = true;
          if (used.contains((Attribute) output.apply(i))) {
            return false;
          }
        }
      }
      return offered;
    }

    private static Seq without(LogicalRelation scan) {
      ArrayList kept = new ArrayList();
      Seq output = scan.output();
      for (int i = 0; i < output.size(); i++) {
        if (!isMetadata(output.apply(i))) {
          kept.add(output.apply(i));
        }
      }
      return PlannedFiles.seq(kept);
    }

    private static boolean isMetadata(Object attribute) {
      return ((Attribute) attribute).metadata().contains("__metadata_col");
    }
  }

  public static class Replace extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof Filter && relation(((Filter) node).child()) != null || relation(node) != null;
    }

    /** A scan of ours that has not been planned; null for anything else. */
    static LogicalRelation relation(Object node) {
      if (!(node instanceof LogicalRelation) || !(((LogicalRelation) node).relation() instanceof HadoopFsRelation)) {
        return null;
      }
      Object index = ((HadoopFsRelation) ((LogicalRelation) node).relation()).location();
      return index instanceof PenstockIndex && !((PenstockIndex) index).isPlanned() ? (LogicalRelation) node : null;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) {
        return otherwise.apply(node);
      }
      if (node instanceof Filter) {
        Filter filter = (Filter) node;
        return new Filter(filter.condition(), planned(relation(filter.child()), filter.condition()));
      }
      return planned(relation(node), null);
    }

    /** The scan with its files; as it was when they cannot be had, for then the scan itself says why. */
    private static LogicalRelation planned(LogicalRelation scan, Expression condition) {
      HadoopFsRelation files = (HadoopFsRelation) scan.relation();
      ArrayList onPartitions = new ArrayList();
      ArrayList onData = new ArrayList();
      if (condition != null) {
        AttributeSet keys = columns(scan, files.partitionSchema());
        Expression named = (Expression) DataSourceStrategy$.MODULE$
            .normalizeExprs(PlannedFiles.seq(new Object[] {condition}), scan.output()).apply(0); // as the table spells them
        sort(named, keys, columns(scan, files.dataSchema()).$minus$minus(keys), onPartitions, onData);
      }
      PenstockIndex index;
      try {
        index = ((PenstockIndex) files.location()).planned(PlannedFiles.seq(onPartitions), PlannedFiles.seq(onData));
      } catch (RuntimeException error) {
        return scan;
      }
      HadoopFsRelation smaller = new HadoopFsRelation(
          index, files.partitionSchema(), files.dataSchema(), files.bucketSpec(), index.reader(files.dataSchema()),
          files.options(), files.sparkSession());
      return (LogicalRelation) Copies.with(scan, 0, smaller);
    }

    private static AttributeSet columns(LogicalRelation scan, StructType schema) {
      HashSet names = new HashSet();
      for (int i = 0; i < schema.fieldNames().length; i++) {
        names.add(schema.fieldNames()[i].toLowerCase());
      }
      ArrayList attributes = new ArrayList();
      Seq output = scan.output();
      for (int i = 0; i < output.size(); i++) {
        if (names.contains(((Attribute) output.apply(i)).name().toLowerCase())) {
          attributes.add(output.apply(i));
        }
      }
      return AttributeSet$.MODULE$.apply((scala.collection.Iterable) PlannedFiles.seq(attributes));
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
      add(onPartitions, DataSourceStrategy$.MODULE$.extractPredicatesWithinOutputSet(condition, keys));
      if (condition.references().intersect(keys).nonEmpty()) {
        add(onData, DataSourceStrategy$.MODULE$.extractPredicatesWithinOutputSet(condition, data));
      } else {
        onData.add(condition);
      }
    }

    private static void add(ArrayList to, Option predicate) {
      if (predicate.isDefined()) {
        to.add(predicate.get());
      }
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
