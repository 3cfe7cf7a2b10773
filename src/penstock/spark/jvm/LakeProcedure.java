package io.penstock;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** `CALL lake.system.…`: a procedure that Python executes; it answers with rows. */
public class LakeProcedure implements UnboundProcedure, BoundProcedure {
  private final String lake;
  private final JsonNode facts;

  public LakeProcedure(String lake, JsonNode facts) {
    this.lake = lake;
    this.facts = facts;
  }

  public String name() {
    return Message.text(facts, "name");
  }

  public String description() {
    return Message.text(facts, "description");
  }

  public BoundProcedure bind(StructType inputType) {
    return this;
  }

  public boolean isDeterministic() {
    return false;
  }

  public ProcedureParameter[] parameters() {
    JsonNode described = Message.at(facts, "parameters");
    ProcedureParameter[] parameters = new ProcedureParameter[described.size()];
    for (int i = 0; i < parameters.length; i++) {
      JsonNode each = Message.at(described, i);
      ProcedureParameter.Builder builder = ProcedureParameter.in(Message.text(each, "name"), type(each));
      if (each.has("default")) {
        builder = builder.defaultValue(Message.text(each, "default"));
      }
      parameters[i] = builder.build();
    }
    return parameters;
  }

  public Iterator call(InternalRow input) {
    JsonNode described = Message.at(facts, "parameters");
    ArrayList arguments = new ArrayList();
    for (int i = 0; i < described.size(); i++) {
      Object value = input.isNullAt(i) ? null : input.get(i, type(Message.at(described, i)));
      arguments.add(value == null || value instanceof Boolean || value instanceof Number ? value : value.toString());
    }
    JsonNode answer = new Message("call", lake).with("name", name()).with("arguments", arguments).ask();
    return Collections.singletonList(new Rows(answer)).iterator();
  }

  private static DataType type(JsonNode parameter) {
    return DataType.fromDDL(Message.text(parameter, "type"));
  }

  private static class Rows implements LocalScan {
    private final JsonNode answer;

    Rows(JsonNode answer) {
      this.answer = answer;
    }

    public StructType readSchema() {
      return (StructType) DataType.fromJson(Message.text(answer, "schema"));
    }

    public InternalRow[] rows() {
      StructType schema = readSchema();
      JsonNode rows = Message.at(answer, "rows");
      InternalRow[] made = new InternalRow[rows.size()];
      for (int i = 0; i < made.length; i++) {
        Object[] values = new Object[schema.size()];
        for (int k = 0; k < values.length; k++) {
          values[k] = PlannedFiles.value(Message.at(Message.at(rows, i), k), schema.fields()[k].dataType());
        }
        made[i] = new GenericInternalRow(values);
      }
      return made;
    }
  }
}
