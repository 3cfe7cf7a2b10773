package io.penstock;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * Answers single keys of shredded maps from their sidecars. A plan for which this fails stays as it was, which is only
 * slower; failures are counted, and logged as warnings.
 */
public class HotKeys extends Rule {
  private static int failures = 0;
  private static String last = "";

  public Object apply(Object plan) {
    return apply((TreeNode) plan);
  }

  public TreeNode apply(TreeNode plan) {
    if (!ShreddedMap.mayBeIn(plan)) {
      return plan;
    }
    try {
      return CarryKeys.in((LogicalPlan) plan);
    } catch (Throwable error) {
      note(error);
      return plan;
    }
  }

  private static synchronized void note(Throwable error) {
    java.io.StringWriter text = new java.io.StringWriter();
    error.printStackTrace(new java.io.PrintWriter(text));
    failures++;
    last = text.toString();
    org.slf4j.LoggerFactory.getLogger("io.penstock.HotKeys").warn(
        "hot keys are read from the whole map: the optimizer rule failed (" + failures + " times in this process)", error);
  }

  public static synchronized int failures() {
    return failures;
  }

  /** The last failure with where it happened; empty when there was none. */
  public static synchronized String lastFailure() {
    return last;
  }

  /** Makes the rule for a session. */
  public static class Builder extends scala.runtime.AbstractFunction1 {
    public Object apply(Object session) {
      return new HotKeys();
    }
  }
}
