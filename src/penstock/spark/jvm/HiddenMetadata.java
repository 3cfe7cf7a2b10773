package io.penstock;

import java.util.ArrayList;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Project$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

/**
 * Several relations in one Union that still know `_metadata`. Spark offers it above a relation and above a projection, but
 * not above a Union; so each part has it as its last column, and a projection on top hides it where only those who ask by
 * its name find it, as Spark hides the keys of a join. Nobody who does not ask pays for it.
 */
public class HiddenMetadata {
  /** The same rows without their last column, which is hidden. */
  public static Object hide(SparkSession session, Dataset union) {
    LogicalPlan plan = union.queryExecution().analyzed();
    Seq output = plan.output();
    ArrayList shown = new ArrayList();
    ArrayList hidden = new ArrayList();
    for (int i = 0; i < output.size(); i++) {
      (i < output.size() - 1 ? shown : hidden).add(output.apply(i));
    }
    Project project = new Project(PlannedFiles.seq(shown), plan);
    project.setTagValue(Project$.MODULE$.hiddenOutputTag(), PlannedFiles.seq(hidden));
    return Dataset$.MODULE$.ofRows(session, project);
  }
}
