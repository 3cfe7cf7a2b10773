package io.penstock;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** A request of a catalog to Python: a verb and its arguments, as JSON. */
public class Message {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private final ObjectNode request = MAPPER.createObjectNode();

  /** `lake` is the catalog's name in Spark. */
  public Message(String verb, String lake) {
    request.put("verb", verb).put("lake", lake);
  }

  public Message with(String name, Object value) {
    request.set(name, node(value));
    return this;
  }

  /** What Python answers. An error of Penstock's is thrown as itself; `kind` says which of Spark's own to throw. */
  public JsonNode ask() {
    JsonNode answer;
    try {
      answer = MAPPER.readTree(Questions.ask(request.toString()));
    } catch (java.io.IOException error) {
      throw new IllegalStateException(error);
    }
    if (answer.has("error")) {
      throw new Refused(text(answer, "error"), answer.has("kind") ? text(answer, "kind") : "");
    }
    return answer;
  }

  private static JsonNode node(Object value) {
    if (value instanceof JsonNode) {
      return (JsonNode) value;
    }
    if (value instanceof String[]) {
      value = java.util.Arrays.asList((Object[]) value);
    }
    if (value instanceof List) {
      ArrayNode array = MAPPER.createArrayNode();
      Iterator elements = ((List) value).iterator();
      while (elements.hasNext()) {
        array.add(node(elements.next()));
      }
      return array;
    }
    if (value instanceof Map) {
      ObjectNode object = MAPPER.createObjectNode();
      Iterator entries = ((Map) value).entrySet().iterator();
      while (entries.hasNext()) {
        Map.Entry entry = (Map.Entry) entries.next();
        object.set((String) entry.getKey(), node(entry.getValue()));
      }
      return object;
    }
    return MAPPER.valueToTree(value);
  }

  public static JsonNode at(JsonNode object, String name) {
    return (JsonNode) object.get(name);
  }

  public static JsonNode at(JsonNode array, int place) {
    return (JsonNode) array.get(place);
  }

  public static String text(JsonNode object, String name) {
    return at(object, name).asText();
  }

  public static List texts(JsonNode array) {
    ArrayList texts = new ArrayList();
    for (int i = 0; i < array.size(); i++) {
      texts.add(at(array, i).asText());
    }
    return texts;
  }

  public static Map map(JsonNode object) {
    java.util.LinkedHashMap entries = new java.util.LinkedHashMap();
    Iterator names = object.fieldNames();
    while (names.hasNext()) {
      String name = (String) names.next();
      entries.put(name, text(object, name));
    }
    return entries;
  }

  /** An error of Penstock's on its way through Spark. */
  public static class Refused extends RuntimeException {
    public final String kind;

    public Refused(String message, String kind) {
      super(message);
      this.kind = kind;
    }
  }
}
