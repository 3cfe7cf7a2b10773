package io.penstock;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.types.DataType;

/** The changes of ALTER TABLE, as Python reads them. */
public class TableChanges {
  public static Map described(TableChange change) {
    if (change instanceof TableChange.SetProperty) {
      TableChange.SetProperty set = (TableChange.SetProperty) change;
      return entry("set").with("property", set.property()).with("value", set.value()).entries;
    }
    if (change instanceof TableChange.RemoveProperty) {
      return entry("unset").with("property", ((TableChange.RemoveProperty) change).property()).entries;
    }
    if (change instanceof TableChange.AddColumn) {
      TableChange.AddColumn add = (TableChange.AddColumn) change;
      return entry("add").with("column", list(add.fieldNames())).with("type", type(add.dataType()))
          .with("nullable", Boolean.valueOf(add.isNullable())).with("comment", add.comment())
          .with("position", position(add.position()))
          .with("default", Boolean.valueOf(add.defaultValue() != null)).entries;
    }
    if (change instanceof TableChange.RenameColumn) {
      TableChange.RenameColumn rename = (TableChange.RenameColumn) change;
      return entry("rename").with("column", list(rename.fieldNames())).with("name", rename.newName()).entries;
    }
    if (change instanceof TableChange.DeleteColumn) {
      TableChange.DeleteColumn drop = (TableChange.DeleteColumn) change;
      return entry("drop").with("column", list(drop.fieldNames())).with("if_exists", drop.ifExists()).entries;
    }
    if (change instanceof TableChange.UpdateColumnType) {
      TableChange.UpdateColumnType type = (TableChange.UpdateColumnType) change;
      return entry("type").with("column", list(type.fieldNames())).with("type", type(type.newDataType())).entries;
    }
    if (change instanceof TableChange.UpdateColumnNullability) {
      TableChange.UpdateColumnNullability nulls = (TableChange.UpdateColumnNullability) change;
      return entry("nullable").with("column", list(nulls.fieldNames())).with("nullable", Boolean.valueOf(nulls.nullable())).entries;
    }
    if (change instanceof TableChange.UpdateColumnComment) {
      TableChange.UpdateColumnComment comment = (TableChange.UpdateColumnComment) change;
      return entry("comment").with("column", list(comment.fieldNames())).with("comment", comment.newComment()).entries;
    }
    if (change instanceof TableChange.UpdateColumnPosition) {
      TableChange.UpdateColumnPosition move = (TableChange.UpdateColumnPosition) change;
      return entry("move").with("column", list(move.fieldNames())).with("position", position(move.position())).entries;
    }
    return entry("other").with("name", change.getClass().getSimpleName()).entries;
  }

  /** `""` is the first place, a name is the place behind that column, null the last. */
  private static String position(TableChange.ColumnPosition position) {
    if (position == null) {
      return null;
    }
    return position instanceof TableChange.After ? ((TableChange.After) position).column() : "";
  }

  /** Texts of a limited length are texts in Iceberg. */
  private static String type(DataType type) {
    return CharVarcharUtils.replaceCharVarcharWithString(type).json();
  }

  private static java.util.List list(String[] names) {
    return Arrays.asList((Object[]) names);
  }

  private static Entry entry(String change) {
    return new Entry().with("change", change);
  }

  private static class Entry {
    final LinkedHashMap entries = new LinkedHashMap();

    Entry with(String name, Object value) {
      entries.put(name, value);
      return this;
    }
  }
}
