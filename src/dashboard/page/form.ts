import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Env } from '../deps.ts'
import { csrfField } from '../session/csrf.ts'
import { type Html, NOTHING } from './html.ts'

export type Field = {
  readonly label: string
  readonly name: string
  readonly value?: string
  readonly type?:
    | 'text'
    | 'email'
    | 'url'
    | 'number'
    | 'password'
    | 'datetime-local'
    | 'date'
    | 'search'
  /** Under the field: what may be written into it. */
  readonly hint?: string
  readonly required?: boolean
  readonly placeholder?: string
  /** As of HTML; `off` where a browser should remember nothing. */
  readonly autocomplete?: string
}

/** One line of text with its label. */
export function field(o: Field): Html {
  const hintId = `${o.name}-hint`
  return html`
    <p class="field">
      <label for="${o.name}">${o.label}</label>
      <input id="${o.name}" name="${o.name}" type="${o.type ?? 'text'}" value="${o.value ?? ''}"
        placeholder="${o.placeholder ?? ''}" autocomplete="${o.autocomplete ?? 'off'}"
        ${o.required ? html`required` : NOTHING}
        ${o.hint === undefined ? NOTHING : html`aria-describedby="${hintId}"`} />
      ${o.hint === undefined ? NOTHING : html`<small id="${hintId}">${o.hint}</small>`}
    </p>`
}

export type Choice = {
  readonly value: string
  readonly label: string
  readonly checked?: boolean
  /** Of a box: what ticking it means, in a sentence. */
  readonly hint?: Html | string
}

/** Boxes to be ticked, of which any number may be. */
export const boxes = (legend: string, name: string, choices: readonly Choice[]): Html => html`
  <fieldset class="boxes">
    <legend>${legend}</legend>
    ${choices.map(
      ({ value, label, checked, hint }) => html`
        <label><input type="checkbox" name="${name}" value="${value}" ${checked ? html`checked` : NOTHING} />
        <span>${label}${hint === undefined ? NOTHING : html` <small>${hint}</small>`}</span></label>`,
    )}
  </fieldset>`

/** One of several, in a list that opens. */
export const select = (o: {
  readonly label: string
  readonly name: string
  readonly choices: readonly Choice[]
}): Html => html`
  <p class="field">
    <label for="${o.name}">${o.label}</label>
    <select id="${o.name}" name="${o.name}">
      ${o.choices.map(
        ({ value, label, checked }) =>
          html`<option value="${value}" ${checked ? html`selected` : NOTHING}>${label}</option>`,
      )}
    </select>
  </p>`

/** A form that changes something. */
export const form = (c: Context<Env>, action: string, body: Html): Html => html`
  <form method="post" action="${action}">${csrfField(c)}${body}</form>`

/** A button that asks once more before it does what cannot be undone; without scripts too. */
export const confirmed = (
  c: Context<Env>,
  o: {
    readonly action: string
    readonly label: string
    readonly question: string
    readonly yes: string
  },
): Html => html`
  <details class="confirm">
    <summary class="button is-danger">${o.label}</summary>
    <div class="menu">
      <p>${o.question}</p>
      ${form(c, o.action, html`<button class="is-danger">${o.yes}</button>`)}
    </div>
  </details>`
