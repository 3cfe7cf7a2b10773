package io.penstock;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.MapKeys;
import org.apache.spark.sql.catalyst.expressions.MapValues;
import org.apache.spark.sql.catalyst.expressions.Size;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;

/** Replaces every shredded map that is left in an optimized plan, those of subqueries included. */
public class LowerMaps extends Change {
  /**
   * The plan without shredded maps. Spark optimizes subqueries on their own first; they stay as they are until the
   * query around them is optimized, which may ask them for a key.
   */
  public static LogicalPlan in(LogicalPlan plan) {
    return plan instanceof Subquery ? plan : everywhere(plan);
  }

  private static LogicalPlan everywhere(LogicalPlan plan) {
    return ShreddedMap.mayBeIn(plan) ? (LogicalPlan) plan.transformAllExpressions(new LowerMaps()) : plan;
  }

  public Object change(Object node) {
    if (node instanceof SubqueryExpression) {
      LogicalPlan plan = (LogicalPlan) ((SubqueryExpression) node).plan();
      LogicalPlan lowered = everywhere(plan);
      return lowered == plan ? null : ((SubqueryExpression) node).withNewPlan(lowered);
    }
    if (node instanceof ShreddedMap) {
      return ((ShreddedMap) node).whole().map();
    }
    boolean isPart = node instanceof Size || node instanceof MapKeys || node instanceof MapValues;
    Object map = isPart ? ((Expression) node).children().apply(0) : null;
    if (!(map instanceof ShreddedMap)) {
      return null;
    }
    WholeMap whole = ((ShreddedMap) map).whole();
    if (node instanceof Size) {
      return new Size(whole.mapKeys(), ((Size) node).legacySizeOfNull()); // the values need not be put together for it
    }
    return node instanceof MapKeys ? whole.mapKeys() : whole.mapValues();
  }
}
