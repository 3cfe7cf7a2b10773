package io.penstock;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A lake as a catalog of Spark's. Python knows the tables; this class asks it, in Spark's words. */
public class LakeCatalog implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog, FunctionCatalog {
  private String name;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    message("open").with("options", options.asCaseSensitiveMap()).ask();
  }

  public String name() {
    return name;
  }

  /** As Spark's errors show it in plans. */
  public String toString() {
    return name;
  }

  /** Names of one part mean tables of this namespace, as in other catalogs. */
  public String[] defaultNamespace() {
    return new String[] {"default"};
  }

  // Tables

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    try {
      return identifiers(namespace, Message.at(message("tables").with("namespace", namespace).ask(), "names"));
    } catch (Message.Refused error) {
      if (error.kind.equals("no-namespace")) {
        throw new NoSuchNamespaceException(qualified(namespace));
      }
      throw error;
    }
  }

  public Table loadTable(Identifier table) throws NoSuchTableException {
    return load(table, message("load"));
  }

  public Table loadTable(Identifier table, String version) throws NoSuchTableException {
    return load(table, message("load").with("version", version));
  }

  public Table loadTable(Identifier table, long micros) throws NoSuchTableException {
    return load(table, message("load").with("micros", Long.valueOf(micros)));
  }

  /** A table that a statement is about to change. */
  public Table loadTable(Identifier table, Set privileges) throws NoSuchTableException {
    Table target = loadTable(table);
    WriteTarget.set((LakeTable) target);
    return target;
  }

  private Table load(Identifier table, Message message) throws NoSuchTableException {
    try {
      return new LakeTable(name, message.with("table", parts(table)).ask());
    } catch (Message.Refused error) {
      if (error.kind.equals("no-table")) {
        throw new NoSuchTableException(table);
      }
      throw error;
    }
  }

  public boolean tableExists(Identifier table) {
    return Message.at(message("exists").with("table", parts(table)).ask(), "exists").asBoolean();
  }

  public Table createTable(Identifier table, StructType schema, Transform[] by, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return new LakeTable(name, created("create", table, schema, by, properties));
  }

  public Table createTable(Identifier table, Column[] columns, Transform[] by, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return createTable(table, CatalogV2Util.v2ColumnsToStructType(columns), by, properties);
  }

  // if TableCatalog.createTableLike
  public Table createTableLike(Identifier table, org.apache.spark.sql.connector.catalog.TableInfo own, Table source)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    HashMap properties = new HashMap(source.properties());
    String[] others = new String[] {"provider", "location", "external", "is_managed_location"};
    for (int i = 0; i < others.length; i++) {
      properties.remove(others[i]);
    }
    properties.keySet().removeIf(new OfOptions());
    properties.putAll(own.properties());
    return createTable(table, own.columns(), own.partitions(), properties);
  }

  private static class OfOptions implements java.util.function.Predicate {
    public boolean test(Object property) {
      return property.toString().startsWith("option.");
    }
  }
  // end

  private JsonNode created(String verb, Identifier table, StructType schema, Transform[] by, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    try {
      return message(verb).with("table", parts(table)).with("schema", stored(schema).json()).with("by", described(by))
          .with("properties", properties).ask();
    } catch (Message.Refused error) {
      if (error.kind.equals("table-exists")) {
        throw new TableAlreadyExistsException(table);
      }
      if (error.kind.equals("no-namespace")) {
        throw new NoSuchNamespaceException(qualified(table.namespace()));
      }
      throw error;
    }
  }

  public Table alterTable(Identifier table, TableChange[] changes) throws NoSuchTableException {
    ArrayList described = new ArrayList();
    for (int i = 0; i < changes.length; i++) {
      described.add(TableChanges.described(changes[i]));
    }
    return load(table, message("alter").with("changes", described));
  }

  public boolean dropTable(Identifier table) {
    return Message.at(message("drop").with("table", parts(table)).with("purge", Boolean.FALSE).ask(), "dropped").asBoolean();
  }

  public boolean purgeTable(Identifier table) {
    return Message.at(message("drop").with("table", parts(table)).with("purge", Boolean.TRUE).ask(), "dropped").asBoolean();
  }

  public void renameTable(Identifier table, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    try {
      message("rename").with("table", parts(table)).with("to", parts(to)).ask();
    } catch (Message.Refused error) {
      if (error.kind.equals("no-table")) {
        throw new NoSuchTableException(table);
      }
      if (error.kind.equals("table-exists")) {
        throw new TableAlreadyExistsException(to);
      }
      throw error;
    }
  }

  // Tables that are made together with their rows

  public StagedTable stageCreate(Identifier table, Column[] columns, Transform[] by, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return staged("stage-create", table, columns, by, properties);
  }

  public StagedTable stageReplace(Identifier table, Column[] columns, Transform[] by, Map properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    try {
      return staged("stage-replace", table, columns, by, properties);
    } catch (Message.Refused error) {
      if (error.kind.equals("no-table")) {
        throw new NoSuchTableException(table);
      }
      throw error;
    } catch (TableAlreadyExistsException error) {
      throw new IllegalStateException(error);
    }
  }

  public StagedTable stageCreateOrReplace(Identifier table, Column[] columns, Transform[] by, Map properties)
      throws NoSuchNamespaceException {
    try {
      return staged("stage-create-or-replace", table, columns, by, properties);
    } catch (TableAlreadyExistsException error) {
      throw new IllegalStateException(error);
    }
  }

  private StagedTable staged(String verb, Identifier table, Column[] columns, Transform[] by, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    StructType schema = CatalogV2Util.v2ColumnsToStructType(columns);
    return new LakeTable.Staged(name, created(verb, table, schema, by, properties));
  }

  // Namespaces

  public String[][] listNamespaces() {
    return listNamespaces(new String[0]);
  }

  public String[][] listNamespaces(String[] parent) {
    JsonNode names = Message.at(message("namespaces").with("parent", parent).ask(), "names");
    String[][] namespaces = new String[names.size()][];
    for (int i = 0; i < namespaces.length; i++) {
      namespaces[i] = (String[]) Message.texts(Message.at(names, i)).toArray(new String[0]);
    }
    return namespaces;
  }

  public boolean namespaceExists(String[] namespace) {
    try {
      loadNamespaceMetadata(namespace);
      return true;
    } catch (NoSuchNamespaceException error) {
      return false;
    }
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    return Message.map(Message.at(ofNamespace("namespace", namespace), "properties"));
  }

  public void createNamespace(String[] namespace, Map properties) throws NamespaceAlreadyExistsException {
    try {
      message("create-namespace").with("namespace", namespace).with("properties", properties).ask();
    } catch (Message.Refused error) {
      if (error.kind.equals("namespace-exists")) {
        throw new NamespaceAlreadyExistsException(namespace);
      }
      throw error;
    }
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) throws NoSuchNamespaceException {
    HashMap set = new HashMap();
    ArrayList removed = new ArrayList();
    for (int i = 0; i < changes.length; i++) {
      if (changes[i] instanceof NamespaceChange.SetProperty) {
        NamespaceChange.SetProperty change = (NamespaceChange.SetProperty) changes[i];
        set.put(change.property(), change.value());
      } else {
        removed.add(((NamespaceChange.RemoveProperty) changes[i]).property());
      }
    }
    ofNamespace(message("alter-namespace").with("set", set).with("removed", removed), namespace);
  }

  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    try {
      ofNamespace(message("drop-namespace").with("cascade", Boolean.valueOf(cascade)), namespace);
      return true;
    } catch (Message.Refused error) {
      if (error.kind.equals("namespace-not-empty")) {
        throw new NonEmptyNamespaceException(namespace);
      }
      throw error;
    }
  }

  private JsonNode ofNamespace(String verb, String[] namespace) throws NoSuchNamespaceException {
    return ofNamespace(message(verb), namespace);
  }

  private JsonNode ofNamespace(Message message, String[] namespace) throws NoSuchNamespaceException {
    try {
      return message.with("namespace", namespace).ask();
    } catch (Message.Refused error) {
      if (error.kind.equals("no-namespace")) {
        throw new NoSuchNamespaceException(qualified(namespace));
      }
      throw error;
    }
  }

  // Procedures

  public UnboundProcedure loadProcedure(Identifier procedure) {
    return new LakeProcedure(name, message("procedure").with("name", parts(procedure)).ask());
  }

  public Identifier[] listProcedures(String[] namespace) {
    return identifiers(namespace, Message.at(message("procedures").with("namespace", namespace).ask(), "names"));
  }

  // Functions: there are none, which is not an error

  public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[0];
  }

  public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
    throw new NoSuchFunctionException(function);
  }

  private Message message(String verb) {
    return new Message(verb, name);
  }

  /** The namespace with the catalog in front, as Spark's errors name it. */
  private String[] qualified(String[] namespace) {
    ArrayList names = new ArrayList(Arrays.asList((Object[]) namespace));
    names.add(0, name);
    return (String[]) names.toArray(new String[0]);
  }

  /** Texts of a limited length are texts in Iceberg. */
  private static StructType stored(StructType schema) {
    return CharVarcharUtils.replaceCharVarcharWithStringInSchema(schema);
  }

  private static List parts(Identifier table) {
    ArrayList names = new ArrayList(Arrays.asList((Object[]) table.namespace()));
    names.add(table.name());
    return names;
  }

  private static Identifier[] identifiers(String[] namespace, JsonNode names) {
    Identifier[] identifiers = new Identifier[names.size()];
    for (int i = 0; i < identifiers.length; i++) {
      identifiers[i] = Identifier.of(namespace, Message.at(names, i).asText());
    }
    return identifiers;
  }

  private static List described(Transform[] by) {
    ArrayList texts = new ArrayList();
    for (int i = 0; i < by.length; i++) {
      texts.add(by[i].describe());
    }
    return texts;
  }
}
