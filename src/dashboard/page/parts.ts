import { html } from 'hono/html'
import { type Html, NOTHING } from './html.ts'
import { type IconName, icon } from './icon.ts'
import { TONE_ICONS, type Tone } from './text.ts'

/*
 * The parts that all pages use. The style of each is in `browser/css/`, the colors in `tokens.css`.
 *
 * - `page()` (layout.ts): title, `back` link, `intro` sentence, `actions` with one `.primary`.
 * - `card()`, `tiles()`, `facts()`, `items()`, `chips()`, `pageLinks()`: here.
 * - `table()` (table.ts): becomes a card for each row on a phone.
 * - `badge()`, `statusBadge()`, `time()`, `ago()`, `CLASS_NAMES` (text.ts).
 * - `notice()`, `empty()`, `reasonWord()` (notice.ts); `donut()`, `bars()` (chart.ts).
 * - `field()`, `select()`, `boxes()`, `form()`, `confirmed()` (form.ts); `icon()` (icon.ts).
 *
 * A row of actions is `<div class="actions">`, a row of fields is `<div class="row">`. The CSS
 * classes `quiet`, `is-small` and `is-danger` change a button; `muted` and `mono` change text.
 */

/** Renders a card with its heading; `more` is a link or a form beside the heading. */
export const card = (o: {
  readonly title: string
  readonly body: Html | readonly Html[]
  readonly more?: Html
  readonly id?: string
  /** Columns in a parent with the classes `grid is-12`. */
  readonly span?: 4 | 6 | 8 | 12
}): Html => html`
  <section class="card${o.span === undefined ? '' : ` span-${o.span}`}"${o.id === undefined ? NOTHING : html` id="${o.id}"`}>
    <header><h2>${o.title}</h2>${o.more ?? NOTHING}</header>
    ${o.body}
  </section>`

type Tile = {
  readonly label: Html | string
  readonly value: Html | string
  readonly note?: Html | string
}

/** Renders the main figures of a page. */
export const tiles = (shown: readonly Tile[]): Html => html`
  <dl class="tiles">${shown.map(
    ({ label, value, note }) => html`
      <div class="tile"><dt>${label}</dt><dd class="value">${value}</dd>
      ${note === undefined ? NOTHING : html`<dd class="note">${note}</dd>`}</div>`,
  )}</dl>`

/** A name with its value; null omits it. */
type Fact = readonly [name: Html | string, value: Html | string | null | undefined]

/** Renders names with values in columns. */
export const facts = (shown: readonly Fact[]): Html => html`
  <dl class="figures">${shown.map(([name, value]) =>
    value === null || value === undefined || value === ''
      ? NOTHING
      : html`<div><dt>${name}</dt><dd>${value}</dd></div>`,
  )}</dl>`

export type Item = {
  readonly tone: Tone
  readonly title: Html | string
  readonly note?: Html | string
  readonly link?: { readonly href: string; readonly label: string }
}

/** Renders a list of findings, each with its status and a link to the fix. */
export const items = (shown: readonly Item[]): Html => html`
  <ul class="items">${shown.map(
    ({ tone, title, note, link }) => html`
      <li><span class="mark is-${tone}">${icon(TONE_ICONS[tone])}</span>
        <div><b>${title}</b>${note === undefined ? NOTHING : html`<small>${note}</small>`}</div>
        ${link === undefined ? NOTHING : html`<a href="${link.href}">${link.label}</a>`}</li>`,
  )}</ul>`

type Choice = {
  readonly href: string
  readonly label: Html | string
  readonly isCurrent: boolean
}

/** Renders links of which one or more are chosen: a filter. */
export const chips = (
  label: string,
  choices: readonly (Choice & { readonly count?: string })[],
): Html => html`
  <nav class="chips" aria-label="${label}">${choices.map(
    one =>
      html`<a class="chip" href="${one.href}" ${one.isCurrent ? html`aria-current="true"` : NOTHING}>${one.label}${one.count === undefined ? NOTHING : html` <b>${one.count}</b>`}</a>`,
  )}</nav>`

/** Renders links of which exactly one is chosen, such as a period. */
export const segment = (label: string, choices: readonly Choice[]): Html => html`
  <nav class="segment" aria-label="${label}">${choices.map(
    one =>
      html`<a href="${one.href}" ${one.isCurrent ? html`aria-current="page"` : NOTHING}>${one.label}</a>`,
  )}</nav>`

type Pages = {
  /** Of the page that is shown; undefined on the first one. */
  readonly cursor: string | undefined
  /** Null on the last page. */
  readonly next: string | null
  /** Returns the URL of a page; null is the first one. */
  readonly urlAt: (cursor: string | null) => string
  readonly older?: string
}

/** Renders the links to the first and to the next page of entries, newest first. */
export const pageLinks = ({ cursor, next, urlAt, older = 'Older' }: Pages): Html =>
  cursor === undefined && next === null
    ? NOTHING
    : html`
  <nav class="actions" aria-label="Pages of entries">
    ${cursor === undefined ? NOTHING : html`<a class="button" href="${urlAt(null)}">Newest</a>`}
    ${next === null ? NOTHING : html`<a class="button" href="${urlAt(next)}">${older}</a>`}
  </nav>`

/** Renders the primary action of a page as a link. */
export const primaryLink = (href: string, label: string, name?: IconName): Html =>
  html`<a class="button primary" href="${href}">${name === undefined ? NOTHING : icon(name)}${label}</a>`
