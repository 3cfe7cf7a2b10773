package io.penstock;

import java.util.HashMap;
import java.util.Map;

import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Statements about a table of a lake that do nothing there, and those that are refused: in words that name the table. */
public class LakeCommands {
  private static final Map NEEDLESS = new HashMap(); // by the class of Spark's plan
  private static final Map REFUSED = new HashMap();

  static {
    NEEDLESS.put("AnalyzeTable", "ANALYZE TABLE");
    NEEDLESS.put("AnalyzeColumn", "ANALYZE TABLE");
    NEEDLESS.put("AnalyzeTables", "ANALYZE TABLES");
    NEEDLESS.put("RepairTable", "REPAIR TABLE");
    NEEDLESS.put("RecoverPartitions", "RECOVER PARTITIONS");
    REFUSED.put("AddConstraint", "ADD CONSTRAINT");
    REFUSED.put("AddCheckConstraint", "ADD CONSTRAINT");
    REFUSED.put("DropConstraint", "DROP CONSTRAINT");
    REFUSED.put("AddPartitions", "ADD PARTITION");
    REFUSED.put("DropPartitions", "DROP PARTITION");
    REFUSED.put("RenamePartitions", "RENAME PARTITION");
    REFUSED.put("TruncatePartition", "TRUNCATE PARTITION");
    REFUSED.put("LoadData", "LOAD DATA");
    REFUSED.put("CreateIndex", "CREATE INDEX");
    REFUSED.put("DropIndex", "DROP INDEX");
    REFUSED.put("SetTableSerDeProperties", "SET SERDE");
    REFUSED.put("AlterTableClusterBy", "CLUSTER BY");
    REFUSED.put("AlterTableCollation", "DEFAULT COLLATION");
  }

  /** Whether a statement is one that does nothing; an error for one that is refused. */
  public static boolean isLeftOut(Command plan) {
    String name = plan.getClass().getSimpleName();
    LogicalPlan subject = (LogicalPlan) ((LogicalPlan) plan).children().apply(0);
    while (name.equals("AddCheckConstraint") && subject.children().size() == 1) { // a query for rows that violate it
      subject = (LogicalPlan) subject.children().apply(0);
    }
    Object table = null;
    if (subject instanceof ResolvedTable) {
      table = ((ResolvedTable) subject).table();
    } else if (subject instanceof DataSourceV2Relation) {
      table = ((DataSourceV2Relation) subject).table();
    }
    if (table instanceof LakeTable) {
      if (REFUSED.containsKey(name)) {
        ((LakeTable) table).refuse((String) REFUSED.get(name));
      }
      return NEEDLESS.containsKey(name) && say(name, ((LakeTable) table).lake, ((LakeTable) table).name());
    }
    if (subject instanceof ResolvedNamespace && ((ResolvedNamespace) subject).catalog() instanceof LakeCatalog) {
      String lake = ((ResolvedNamespace) subject).catalog().name();
      return NEEDLESS.containsKey(name) && say(name, lake, lake);
    }
    return false;
  }

  private static boolean say(String name, String lake, String subject) {
    new Message("needless", lake).with("statement", NEEDLESS.get(name)).with("name", subject).ask();
    return true;
  }
}
