package io.penstock;

import java.util.HashMap;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table as a stream: Python makes a data source of it, which Spark reads through its own Python data sources. */
public class LakeStream implements ScanBuilder, Scan {
  private final String lake;
  private final String handle;
  private final Object table; // as long as it lives, Python knows the handle
  private final StructType schema;
  private final CaseInsensitiveStringMap options;

  public LakeStream(String lake, String handle, Object table, StructType schema, CaseInsensitiveStringMap options) {
    this.lake = lake;
    this.handle = handle;
    this.table = table;
    this.schema = schema;
    this.options = options;
  }

  public Scan build() {
    return this;
  }

  public StructType readSchema() {
    return schema;
  }

  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    String session = Questions.hold(SparkSession.active());
    try {
      Message message = new Message("stream", lake).with("handle", handle).with("session", session);
      PythonDataSourceV2 source = new PythonDataSourceV2();
      source.setShortName(Message.text(message.with("options", options.asCaseSensitiveMap()).ask(), "source"));
      SupportsRead rows = (SupportsRead) source.getTable(schema, new Transform[0], new HashMap());
      return rows.newScanBuilder(CaseInsensitiveStringMap.empty()).build().toMicroBatchStream(checkpoint);
    } finally {
      Questions.drop(session);
    }
  }
}
