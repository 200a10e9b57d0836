import "@holdfast/seatmap";
import type { HoldfastSeatmap } from "@holdfast/seatmap";
import { dice, stadium, theatre } from "./houses.js";

const asked = new URLSearchParams(location.search);
const name = asked.get("house") === "stadium" ? "stadium" : "theatre";
const map = document.querySelector<HoldfastSeatmap>("#map")!;
const byId = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;

for (const link of document.querySelectorAll<HTMLAnchorElement>("nav a")) {
  if (new URL(link.href).searchParams.get("house") === name) link.setAttribute("aria-current", "page");
}
for (const attribute of ["mode", "draw", "selection", "lasso", "color-by", "wheel"]) {
  const value = asked.get(attribute);
  if (value !== null) map.setAttribute(attribute, value);
}

const house = name === "stadium" ? stadium(Number(asked.get("seats") ?? 100_000)) : theatre();
map.setAttribute("label", name === "stadium" ? "Seat map of the stadium" : "Seat map of the theatre");
map.holdTypes = { SPONSOR: { displayName: "Sponsor", displayColor: "#7c4dbd", displayIcon: "star" } };
map.geometry = house.geometry;
map.prices = house.prices;
map.snapshot = house.snapshot;

// The cart beside the map -----------------------------------------------------------------------------------------------
const money = new Intl.NumberFormat("en", { style: "currency", currency: "EUR" });
map.onCartChange = ({ seats, totalMinor }) => {
  byId("empty").hidden = seats.length > 0;
  byId("cart").replaceChildren(...seats.slice(0, 50).map((seat) => {
    const item = document.createElement("li");
    const what = document.createElement("span"), price = document.createElement("span");
    what.textContent = `${seat.section.name}, row ${seat.row}, seat ${seat.number}`;
    price.textContent = seat.priceMinor === null ? "" : money.format(seat.priceMinor / 100);
    item.append(what, price);
    return item;
  }));
  const total = byId("total");
  total.hidden = seats.length === 0;
  const count = document.createElement("span"), sum = document.createElement("span");
  count.textContent = `${seats.length} ${seats.length === 1 ? "seat" : "seats"}`;
  sum.textContent = totalMinor === null ? "" : money.format(totalMinor / 100);
  total.replaceChildren(count, sum);
};

// Settings --------------------------------------------------------------------------------------------------------------
const theme = byId<HTMLSelectElement>("theme");
const showTheme = () => {
  map.setAttribute("theme", theme.value);
  document.documentElement.dataset.theme = theme.value;
};
theme.value = asked.get("theme") ?? "auto";
theme.addEventListener("change", showTheme);
showTheme();
const organiser = byId<HTMLInputElement>("organiser");
organiser.checked = asked.has("lasso");
organiser.addEventListener("change", () => {
  map.toggleAttribute("lasso", organiser.checked);
  map.setAttribute("selection", organiser.checked ? "any" : "available");
});
const byPrice = byId<HTMLInputElement>("by-price");
byPrice.checked = asked.get("color-by") === "price";
byPrice.addEventListener("change", () => map.setAttribute("color-by", byPrice.checked ? "price" : "state"));

// Other buyers ------------------------------------------------------------------------------------------------------------
const simulate = byId<HTMLInputElement>("simulate");
if (asked.has("still")) simulate.checked = false;
const random = dice(3);
const states = Uint8Array.from(house.snapshot.states, (letter) => "ahsb".indexOf(letter));
const versions = new Int32Array(states.length);
const atOnce = name === "stadium" ? 120 : 3;
setInterval(() => {
  if (!simulate.checked) return;
  const ordinals = Array.from({ length: atOnce }, () => Math.floor(random() * states.length)).filter((seat) => states[seat]! < 2);
  for (const seat of ordinals) {
    versions[seat]!++;
    states[seat] = states[seat] === 0 ? 1 : random() < 0.5 ? 0 : 2;
  }
  map.applyChanges({
    ordinals, values: ordinals.map((seat) => states[seat]! | (states[seat] === 1 ? 1 << 2 : 0)),
    versions: ordinals.map((seat) => versions[seat]!), hold_types: [null, "CART"],
  });
}, 300);
