// The page starts here: with the data in it, and in the served page with a field to type another predicate into.

const data = JSON.parse(byId("data").textContent);
let waiting = null;
let asked = null;

function tellProblem(problem) {
  const lines = problem ? [problem.message, ...(problem.excerpt ? [problem.excerpt] : [])] : [];
  byId("problem").replaceChildren(...(problem ? [el("pre", {}, lines.join("\n"))] : []));
  byId("where").setAttribute("aria-invalid", String(Boolean(problem)));
}

async function ask(refresh) {
  clearTimeout(waiting);
  asked?.abort();
  const own = asked = new AbortController();
  const where = byId("where").value.trim();
  const query = new URLSearchParams({ where, ...(refresh ? { refresh: "1" } : {}) });
  document.querySelector("main").classList.add("busy");
  try {
    const answer = await fetch(`/plan?${query}`, { signal: own.signal, headers: { accept: "application/json" } });
    const found = await answer.json();
    if (own !== asked) return;
    tellProblem(found.error);
    if (found.error) return;
    history.replaceState(null, "", where ? `/?${new URLSearchParams({ where })}` : "/");
    showAll(found);
    byId("status").textContent = headline(found);
  } catch (error) {
    if (error.name !== "AbortError") tellProblem({ message: "The server does not answer; is penstock serve still running?" });
  } finally {
    if (own === asked) document.querySelector("main").classList.remove("busy");
  }
}

function listen({ where, error }) {
  const field = byId("where");
  byId("ask").hidden = false;
  field.value = where;
  tellProblem(error);
  field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => ask(), 400); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); ask(); }
  });
  byId("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  byId("refresh").addEventListener("click", () => ask(true));
}

document.body.append(patterns());
showAll(data);
if (data.live) listen(data.live);
