package io.penstock;

import java.net.URI;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** What the session catalog knows, each answer as one JSON: a call through py4j for each partition would take minutes. */
public class SessionTables {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String CHAR = "__CHAR_VARCHAR_TYPE_STRING";
  private static final String DEFAULT = "EXISTS_DEFAULT"; // what Spark fills in where a file lacks the column

  /** A table by the parts of its name; `missing` where there is none. */
  public static String table(SparkSession session, String name) throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    java.util.List parts = Seqs.list(session.sessionState().sqlParser().parseMultipartIdentifier(name));
    ObjectNode answer = JSON.createObjectNode();
    if (parts.size() == 3 && parts.get(0).toString().equalsIgnoreCase("spark_catalog")) {
      parts = parts.subList(1, 3);
    }
    if (parts.size() > 2) {
      answer.put("foreign", parts.get(0).toString());
      return answer.toString();
    }
    String last = parts.get(parts.size() - 1).toString();
    if (parts.size() == 1 && catalog.isTempView(Seqs.seq(last))) {
      answer.put("kind", "VIEW").put("name", last);
      return answer.toString();
    }
    TableIdentifier identifier = identifier(parts.size() == 1 ? catalog.getCurrentDatabase() : parts.get(0).toString(), last);
    if (!catalog.databaseExists((String) identifier.database().get()) || !catalog.tableExists(identifier)) {
      answer.put("missing", identifier.database().get() + "." + last);
      return answer.toString();
    }
    describe(session, catalog.getTableMetadata(identifier), answer);
    return answer.toString();
  }

  private static void describe(SparkSession session, CatalogTable table, ObjectNode answer) {
    answer.put("database", (String) table.identifier().database().get()).put("table", table.identifier().table());
    answer.put("name", table.identifier().database().get() + "." + table.identifier().table());
    answer.put("kind", table.tableType().name());
    answer.put("provider", provider(session, text(table.provider(), "hive")));
    answer.put("location", location(session, table.storage().locationUri()));
    answer.set("stored", stored(table.storage()));
    answer.set("properties", texts(table.properties()));
    boolean isHive = answer.get("provider").asText().equalsIgnoreCase("hive");
    boolean isManaged = session.sessionState().conf().manageFilesourcePartitions();
    answer.put("tracked", isHive || isManaged && table.tracksPartitionsInCatalog());
    ArrayNode columns = answer.putArray("columns");
    for (StructField field : table.schema().fields()) {
      ObjectNode column = columns.addObject().put("name", field.name()).put("type", field.dataType().sql());
      column.put("comment", text(field.getComment(), null));
      Metadata metadata = field.metadata();
      column.put("char", metadata.contains(CHAR) ? metadata.getString(CHAR) : null);
      column.put("default", metadata.contains(DEFAULT) ? metadata.getString(DEFAULT) : null);
    }
    ArrayNode partitionBy = answer.putArray("partitionBy");
    for (Object name : Seqs.list(table.partitionColumnNames())) {
      partitionBy.add(name.toString());
    }
  }

  /** The name of a data source that a table may name by its class. */
  private static String provider(SparkSession session, String name) {
    if (name.indexOf('.') < 0) {
      return name;
    }
    try {
      Class source = DataSource$.MODULE$.lookupDataSource(name, session.sessionState().conf());
      return ((DataSourceRegister) source.getConstructor().newInstance()).shortName();
    } catch (Exception error) { // Spark does not find it either, or it has no name
      return name;
    }
  }

  /** The partitions that pass tests, as columns, and how many there are; all of them where the tests cannot be made. */
  public static String partitions(SparkSession session, String database, String name, String tests) throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    TableIdentifier identifier = identifier(database, name);
    StructType columns = catalog.getTableMetadata(identifier).partitionSchema();
    JsonNode asked = JSON.readTree(tests);
    ObjectNode answer = JSON.createObjectNode();
    Seq found = null;
    if (asked.size() > 0) {
      try {
        found = catalog.listPartitionsByFilter(identifier, predicates(asked, columns));
        answer.put("total", catalog.listPartitionNames(identifier, Option.empty()).size());
      } catch (Exception error) {
        answer.put("problem", String.valueOf(root(error).getMessage()));
        found = null;
      }
    }
    if (found == null) {
      found = catalog.listPartitions(identifier, Option.empty());
      answer.put("total", found.size());
    }
    write(session, Seqs.list(found), columns.fieldNames(), answer);
    return answer.toString();
  }

  private static void write(SparkSession session, java.util.List partitions, String[] names, ObjectNode answer) {
    ArrayNode[] texts = new ArrayNode[names.length];
    ArrayNode all = answer.putArray("texts");
    for (int k = 0; k < names.length; k++) {
      texts[k] = all.addArray();
    }
    ArrayNode locations = answer.putArray("locations");
    ArrayNode kinds = answer.putArray("kinds");
    LinkedHashMap known = new LinkedHashMap(); // most partitions are stored alike
    for (Object each : partitions) {
      CatalogTablePartition partition = (CatalogTablePartition) each;
      for (int k = 0; k < names.length; k++) {
        texts[k].add((String) partition.spec().apply(names[k]));
      }
      locations.add(location(session, partition.storage().locationUri()));
      String serde = stored(partition.storage()).toString();
      known.putIfAbsent(serde, Integer.valueOf(known.size()));
      kinds.add((Integer) known.get(serde));
    }
    ArrayNode stored = answer.putArray("stored");
    for (Object serde : known.keySet()) {
      stored.add((String) serde);
    }
  }

  /** The names of all databases, or of the tables in one. */
  public static String names(SparkSession session, String database) throws Exception {
    SessionCatalog catalog = session.sessionState().catalog();
    ArrayNode names = JSON.createArrayNode();
    if (database.isEmpty()) {
      for (Object name : Seqs.list(catalog.listDatabases())) {
        names.add(name.toString());
      }
    } else if (catalog.databaseExists(database)) {
      for (Object table : Seqs.list(catalog.listTables(database, "*", false))) {
        names.add(((TableIdentifier) table).table());
      }
    }
    return names.toString();
  }

  private static TableIdentifier identifier(String database, String name) {
    return new TableIdentifier(name, Option.apply(database), Option.empty());
  }

  private static String location(SparkSession session, Option uri) {
    if (uri.isEmpty()) {
      return null;
    }
    Path path = new Path((URI) uri.get());
    if (path.toUri().getScheme() == null) {
      path = path.makeQualified(FileSystem.getDefaultUri(session.sessionState().newHadoopConf()), null);
    }
    return path.toString();
  }

  private static ObjectNode stored(CatalogStorageFormat storage) {
    ObjectNode node = JSON.createObjectNode().put("serde", text(storage.serde(), ""));
    node.set("options", texts(storage.properties()));
    return node;
  }

  private static String text(Option text, String otherwise) {
    return text.isEmpty() ? otherwise : (String) text.get();
  }

  private static ObjectNode texts(scala.collection.immutable.Map map) {
    ObjectNode node = JSON.createObjectNode();
    for (Object each : CollectionConverters.asJava(map).entrySet()) {
      node.put((String) ((Map.Entry) each).getKey(), (String) ((Map.Entry) each).getValue());
    }
    return node;
  }

  private static Seq predicates(JsonNode tests, StructType columns) {
    ArrayList predicates = new ArrayList();
    for (JsonNode test : tests) {
      StructField field = columns.fields()[columns.fieldIndex(Message.text(test, "column"))];
      AttributeReference column = DataTypeUtils.toAttribute(field);
      ArrayList values = new ArrayList();
      for (JsonNode value : Message.at(test, "values")) {
        values.add(new Literal(PlannedFiles.value(value, field.dataType()), field.dataType()));
      }
      predicates.add(predicate(Message.text(test, "op"), column, values));
    }
    return Seqs.seqOf(predicates);
  }

  private static Expression predicate(String op, Expression column, ArrayList values) {
    if (op.equals("IN")) {
      return new In(column, Seqs.seqOf(values));
    }
    Expression value = (Expression) values.get(0);
    if (op.equals("=")) {
      return new EqualTo(column, value);
    }
    if (op.equals("<")) {
      return new LessThan(column, value);
    }
    if (op.equals("<=")) {
      return new LessThanOrEqual(column, value);
    }
    return op.equals(">") ? new GreaterThan(column, value) : new GreaterThanOrEqual(column, value);
  }

  private static Throwable root(Throwable error) {
    return error.getCause() == null || error.getCause() == error ? error : root(error.getCause());
  }
}
