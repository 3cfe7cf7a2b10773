package io.penstock;

import java.util.Set;

import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.types.StructType;

/** Spark's reader of a file format; `formats/format_registry.py` has the names of the classes. */
public interface FileReader {
  /** The reader for some columns, of which those in `withoutNan` are known to hold no NaN. */
  FileFormat of(StructType data, Set withoutNan);

  /** Whether the session lets it find columns by field id. */
  boolean findsFieldIds();
}
