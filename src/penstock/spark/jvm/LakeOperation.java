package io.penstock;

import java.util.ArrayList;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A DELETE, UPDATE or MERGE as Spark's analyzer plans it: the rows that change, each by its file and place in it, with
 * their new values. `LakeRule` sends them to Python, which writes and commits.
 */
public class LakeOperation implements SupportsDelta, RowLevelOperationBuilder {
  public static final String FILE = "_file";
  public static final String PLACE = "_pos";
  private final LakeTable table;
  private final RowLevelOperation.Command command;

  public LakeOperation(LakeTable table, RowLevelOperation.Command command) {
    this.table = table;
    this.command = command;
  }

  public RowLevelOperation build() {
    return this;
  }

  public RowLevelOperation.Command command() {
    return command;
  }

  public NamedReference[] rowId() {
    return new NamedReference[] {Expressions.column(FILE), Expressions.column(PLACE)};
  }

  /** Columns that conditions may name; a merge would compute them for all rows. */
  public NamedReference[] requiredMetadataAttributes() {
    MetadataColumn[] hidden = command == RowLevelOperation.Command.MERGE ? new MetadataColumn[0] : table.metadataColumns();
    ArrayList names = new ArrayList();
    for (int i = 0; i < hidden.length; i++) {
      if (!hidden[i].name().equals(FILE) && !hidden[i].name().equals(PLACE)) {
        names.add(Expressions.column(hidden[i].name()));
      }
    }
    return (NamedReference[]) names.toArray(new NamedReference[0]);
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return table.newScanBuilder(options);
  }

  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    throw new IllegalStateException("Penstock's rule did not run: is the session attached?");
  }

  public String toString() {
    return command + " of " + table.name();
  }
}
