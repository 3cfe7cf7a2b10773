package io.penstock;

/**
 * The table that a statement of this thread is about to change. Spark evaluates rows of literals while it plans, before
 * any rule of ours, and its errors do not name the table.
 */
public class WriteTarget {
  private static final ThreadLocal TABLES = new ThreadLocal();

  public static void set(LakeTable table) {
    TABLES.set(table);
  }

  /** The plan has come as far as our rules: errors from now on are not about literals. */
  public static void clear() {
    TABLES.remove();
  }

  /** The name of the table, once; null where there is none. */
  public static String take() {
    LakeTable table = (LakeTable) TABLES.get();
    TABLES.remove();
    return table == null ? null : Message.text(table.facts, "name");
  }
}
