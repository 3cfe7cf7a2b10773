package io.penstock;

import java.util.Arrays;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.unsafe.Platform;

/**
 * A merge whose source has few rows: they are collected, and Python merges them as it merges Arrow rows. Whatever stands
 * in the way, an error in an expression too, leaves the merge to Spark's join, which then says what is to be said.
 */
public class FewRows {
  private static final int FIRST = 10000; // rows that are collected before it is known how large they are
  private final LakeTable table;
  private final MergeParts parts;
  private final Narrowed narrowed;
  private boolean isDone;

  public FewRows(LakeTable table, MergeParts parts, Narrowed narrowed) {
    this.table = table;
    this.parts = parts;
    this.narrowed = narrowed;
  }

  /** Try to merge; false where Spark has to. */
  public boolean merge(int attempt) {
    Dataset source = source();
    JsonNode limits = message("few-rows", source).ask();
    InternalRow[] rows = limits.has("rows")
        ? collected(source, Message.at(limits, "rows").asInt(), Message.at(limits, "bytes").asLong()) : null;
    if (rows == null) {
      return false;
    }
    LocalRelation local = new LocalRelation(
        source.queryExecution().analyzed().output(), Seqs.seqOf(Arrays.asList((Object[]) rows)), false, scala.Option.empty());
    String held = Questions.hold(Dataset$.MODULE$.ofRows(narrowed.session(), local));
    try {
      Message message = message("merge-rows", source).with("rows", held).with("attempt", Integer.valueOf(attempt));
      JsonNode answer = message.ask();
      isDone = answer.has("done");
      return isDone || answer.has("again");
    } finally {
      Questions.drop(held);
    }
  }

  /** Whether it was merged; if not, other writers were faster. */
  public boolean isDone() {
    return isDone;
  }

  private Message message(String verb, Dataset source) {
    Message message = new Message(verb, table.lake).with("handle", table.handle).with("parts", parts.description());
    return message.with("schema", source.schema().json());
  }

  private Dataset source() {
    LogicalPlan rows = narrowed.rowsOf(parts.source()).queryExecution().analyzed();
    return Dataset$.MODULE$.ofRows(narrowed.session(), new Project(parts.columns(), rows));
  }

  /** The rows of the source; null when they are more, or larger, or when one of them is an error. */
  private InternalRow[] collected(Dataset source, int most, long mostBytes) {
    try {
      int limit = Math.min(most, FIRST);
      InternalRow[] rows = Narrowed.collect(source.limit(limit + 1));
      if (rows.length > limit && most > limit) {
        limit = (int) Math.min(most, mostBytes * rows.length / bytes(rows));
        rows = limit < FIRST ? rows : Narrowed.collect(source.limit(limit + 1));
      }
      if (rows.length > limit && limit == most) {
        narrowed.hasMany(parts.source());
      }
      return rows.length > limit || bytes(rows) > mostBytes ? null : rows;
    } catch (Exception error) {
      if (error instanceof InterruptedException || String.valueOf(error.getMessage()).contains("CANCELLED")) {
        Platform.throwException(error);
      }
      return null;
    }
  }

  private static long bytes(InternalRow[] rows) {
    long bytes = 1;
    for (int i = 0; i < rows.length; i++) {
      bytes += rows[i] instanceof UnsafeRow ? ((UnsafeRow) rows[i]).getSizeInBytes() : 0;
    }
    return bytes;
  }
}
