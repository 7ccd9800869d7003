import type { Context } from 'hono'
import { html } from 'hono/html'
import type { ErrorBody } from '../../client/types.ts'
import type { Random } from '../../platform/random.ts'
import { ApiProblem } from '../api.ts'
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

/** The fields of a form that was sent. */
export type SubmittedForm = {
  /** What was written into a field; empty where it is not there. */
  readonly text: (name: string) => string
  /** What was chosen of several, such as boxes. */
  readonly all: (name: string) => readonly string[]
}

/** Reads a form. */
export async function sentForm(c: Context<Env>): Promise<SubmittedForm> {
  const fields = await c.req.parseBody({ all: true })
  const all = (name: string) =>
    [fields[name] ?? []].flat().filter(value => typeof value === 'string')
  return { all, text: name => all(name)[0]?.trim() ?? '' }
}

/** What the API has against a form, which is shown again with it; any other fault is thrown on. */
export function problemWith(error: unknown): ApiProblem {
  if (!(error instanceof ApiProblem) || error.status >= 500) throw error
  const { status, code } = error
  const sentence = OF_FORMS[code]
  return sentence === undefined ? error : new ApiProblem(status, { error: sentence, code })
}

/** Where the API speaks of fields that forms do not show. */
const OF_FORMS: Partial<Record<ErrorBody['code'], string>> = {
  last_key: 'This is the last key of the account. Revoke it again, below, if you mean it.',
  idempotency_in_progress:
    'This form was sent a moment ago and is being answered. Send it again to see what came of it.',
  idempotency_mismatch:
    'This form made something already, with what it said before. Send it again to make another one.',
}

const FIELD = '_once'

/** What a form was numbered with; handed to `ask` as `once`. Undefined: somebody took the field out. */
export const readNonce = ({ text }: Pick<SubmittedForm, 'text'>): string | undefined =>
  text(FIELD) || undefined

/**
 * The field that numbers a form that makes something, so that a double click makes one thing. A form that was refused
 * gets another number with its other content; one that is still being answered keeps it, and is told its answer then.
 */
export function nonceField(
  random: Random,
  before: { readonly once?: string | undefined; readonly problem?: Error | undefined } = {},
): Html {
  const isInProgress =
    before.problem instanceof ApiProblem && before.problem.code === 'idempotency_in_progress'
  const number = (isInProgress && before.once) || `form_${random.token(LENGTH)}`
  return html`<input type="hidden" name="${FIELD}" value="${number}" />`
}

/** The place of that field in a form that stays as it is when htmx sends it, and what gives it another number there. */
export const nonceTarget = (once: Html): Html => html`<div id="once">${once}</div>`
export const renewNonce = (once: Html): Html =>
  html`<div hx-swap-oob="innerHTML:#once">${once}</div>`

/** Forms of one key, of one day, are to be told apart. */
const LENGTH = 20
