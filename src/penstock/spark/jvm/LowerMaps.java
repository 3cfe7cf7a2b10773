package io.penstock;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.MapKeys;
import org.apache.spark.sql.catalyst.expressions.MapValues;
import org.apache.spark.sql.catalyst.expressions.Size;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;

/** Replaces every shredded map that is left in an optimized plan, those of subqueries included. */
public class LowerMaps extends scala.runtime.AbstractPartialFunction {
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

  public boolean isDefinedAt(Object node) {
    return node instanceof SubqueryExpression || node instanceof ShreddedMap
        || (node instanceof Size || node instanceof MapKeys || node instanceof MapValues)
        && ((Expression) node).children().apply(0) instanceof ShreddedMap;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) {
      return otherwise.apply(node);
    }
    if (node instanceof SubqueryExpression) {
      SubqueryExpression subquery = (SubqueryExpression) node;
      LogicalPlan plan = (LogicalPlan) subquery.plan();
      LogicalPlan lowered = everywhere(plan);
      return lowered == plan ? subquery : subquery.withNewPlan(lowered);
    }
    if (node instanceof ShreddedMap) {
      return ((ShreddedMap) node).lowered();
    }
    WholeMap whole = ((ShreddedMap) ((Expression) node).children().apply(0)).whole();
    if (node instanceof Size) {
      return new Size(whole.mapKeys(), ((Size) node).legacySizeOfNull()); // the values need not be put together for it
    }
    return node instanceof MapKeys ? whole.mapKeys() : whole.mapValues();
  }
}
