package io.penstock;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashSet;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
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
    return ((LogicalPlan) plan).transformDown(new Replace());
  }

  public static class Replace extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof Filter && relation(((Filter) node).child()) != null || relation(node) != null;
    }

    /** A scan of ours that has not been planned; null for anything else. */
    private static LogicalRelation relation(Object node) {
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

    private static LogicalRelation planned(LogicalRelation scan, Expression condition) {
      HadoopFsRelation files = (HadoopFsRelation) scan.relation();
      HashSet names = new HashSet();
      String[] partitions = files.partitionSchema().fieldNames();
      for (int i = 0; i < partitions.length; i++) {
        names.add(partitions[i].toLowerCase());
      }
      ArrayList onPartitions = new ArrayList();
      ArrayList onData = new ArrayList();
      if (condition != null) {
        sort(condition, names, onPartitions, onData);
      }
      PenstockIndex index = ((PenstockIndex) files.location())
          .planned(PlannedFiles.seq(onPartitions), PlannedFiles.seq(onData));
      HadoopFsRelation smaller = new HadoopFsRelation(
          index, files.partitionSchema(), files.dataSchema(), files.bucketSpec(), files.fileFormat(), files.options(),
          files.sparkSession());
      return withRelation(scan, smaller);
    }

    /** Each conjunct to the partition filters or the data filters, as Spark's own planning does. */
    private static void sort(Expression condition, HashSet names, ArrayList onPartitions, ArrayList onData) {
      if (condition instanceof And) {
        sort(((And) condition).left(), names, onPartitions, onData);
        sort(((And) condition).right(), names, onPartitions, onData);
        return;
      }
      if (!condition.deterministic() || hasSubquery(condition)) {
        return;
      }
      Seq references = condition.references().toSeq();
      boolean all = references.size() > 0;
      for (int i = 0; i < references.size(); i++) {
        all = all && names.contains(((Attribute) references.apply(i)).name().toLowerCase());
      }
      if (all) {
        onPartitions.add(condition);
      } else {
        onData.add(condition);
      }
    }

    private static boolean hasSubquery(Expression expression) {
      if (expression instanceof PlanExpression) {
        return true;
      }
      scala.collection.Seq children = expression.children();
      for (int i = 0; i < children.size(); i++) {
        if (hasSubquery((Expression) children.apply(i))) {
          return true;
        }
      }
      return false;
    }

    /** `scan.copy(relation = …)`; it has four arguments in Spark 4.0 and more later. */
    private static LogicalRelation withRelation(LogicalRelation scan, HadoopFsRelation relation) {
      try {
        Method[] methods = LogicalRelation.class.getMethods();
        Method copy = null;
        for (int i = 0; i < methods.length; i++) {
          if (methods[i].getName().equals("copy")) {
            copy = methods[i];
          }
        }
        Object[] arguments = new Object[copy.getParameterTypes().length];
        arguments[0] = relation;
        for (int i = 1; i < arguments.length; i++) {
          arguments[i] = LogicalRelation.class.getMethod("copy$default$" + (i + 1), new Class[0]).invoke(scan, new Object[0]);
        }
        return (LogicalRelation) copy.invoke(scan, arguments);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException("this version of Spark is not supported", error);
      }
    }
  }

  /** Makes the rule for a session. */
  public static class Builder extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) {
      return new PlanEarly();
    }
  }
}
