import type { Context } from 'hono'
import { html } from 'hono/html'
import type { ErrorBody } from '../../client/types.ts'
import type { Random } from '../../platform/random.ts'
import { ApiProblem } from '../api.ts'
import type { Env } from '../deps.ts'
import { csrfField } from '../session/csrf.ts'
import { type Html, NOTHING } from './html.ts'

type Field = {
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
  /** Help text below the field. */
  readonly hint?: string
  readonly required?: boolean
  /** Lowest and highest number that the browser accepts. */
  readonly range?: readonly [min: number, max: number]
  readonly placeholder?: string
  /** The HTML attribute; defaults to `off`. */
  readonly autocomplete?: string
}

/** Renders a single-line text field with its label. */
export function field(o: Field): Html {
  const hintId = `${o.name}-hint`
  return html`
    <p class="field">
      <label for="${o.name}">${o.label}</label>
      <input id="${o.name}" name="${o.name}" type="${o.type ?? 'text'}" value="${o.value ?? ''}"
        placeholder="${o.placeholder ?? ''}" autocomplete="${o.autocomplete ?? 'off'}"
        ${o.required ? html`required` : NOTHING}
        ${o.range === undefined ? NOTHING : html`min="${o.range[0]}" max="${o.range[1]}"`}
        ${o.hint === undefined ? NOTHING : html`aria-describedby="${hintId}"`} />
      ${o.hint === undefined ? NOTHING : html`<small id="${hintId}">${o.hint}</small>`}
    </p>`
}

type Choice = {
  readonly value: string
  readonly label: string
  readonly checked?: boolean
  /** Help text of a checkbox. */
  readonly hint?: Html | string
}

/** Renders a group of checkboxes. */
export const boxes = (legend: string, name: string, choices: readonly Choice[]): Html => html`
  <fieldset class="boxes">
    <legend>${legend}</legend>
    ${choices.map(
      ({ value, label, checked, hint }) => html`
        <label><input type="checkbox" name="${name}" value="${value}" ${checked ? html`checked` : NOTHING} />
        <span>${label}${hint === undefined ? NOTHING : html` <small>${hint}</small>`}</span></label>`,
    )}
  </fieldset>`

/** Renders a drop-down list with its label. */
export const select = (o: {
  readonly label: string
  readonly name: string
  readonly choices: readonly Choice[]
  /** Help text below the list. */
  readonly hint?: string
}): Html => html`
  <p class="field">
    <label for="${o.name}">${o.label}</label>
    <select id="${o.name}" name="${o.name}"${o.hint === undefined ? NOTHING : html` aria-describedby="${o.name}-hint"`}>
      ${o.choices.map(
        ({ value, label, checked }) =>
          html`<option value="${value}" ${checked ? html`selected` : NOTHING}>${label}</option>`,
      )}
    </select>
    ${o.hint === undefined ? NOTHING : html`<small id="${o.name}-hint">${o.hint}</small>`}
  </p>`

/** Returns the choices of a list of values with their labels. */
export const toChoices = (
  values: readonly (readonly [value: string, label: string])[],
  chosen: string,
): Choice[] => values.map(([value, label]) => ({ value, label, checked: value === chosen }))

/** Renders the drop-down list of a filter, which begins with all. */
export const filterSelect = (
  label: string,
  name: string,
  values: readonly (readonly [value: string, label: string])[],
  chosen = '',
): Html => select({ label, name, choices: toChoices([['', 'All'], ...values], chosen) })

/** Renders a POST form with its CSRF token. */
export const form = (c: Context<Env>, action: string, body: Html): Html => html`
  <form method="post" action="${action}">${csrfField(c)}${body}</form>`

/** Renders a button that asks for confirmation; works without JavaScript. */
export const confirmed = (
  c: Context<Env>,
  o: {
    readonly action: string
    readonly label: string
    readonly question: string
    readonly yes: string
    /** Fields that the confirmation needs, as a password. */
    readonly fields?: Html
  },
): Html => html`
  <details class="confirm">
    <summary class="button is-danger">${o.label}</summary>
    <div class="menu">
      <p>${o.question}</p>
      ${form(c, o.action, html`${o.fields ?? NOTHING}<button class="is-danger">${o.yes}</button>`)}
    </div>
  </details>`

/** The fields of a submitted form. */
export type SubmittedForm = {
  /** The trimmed value of a field; empty if the field is missing. */
  readonly text: (name: string) => string
  /** The value of a field as it was typed, as of a password. */
  readonly raw: (name: string) => string
  /** All values of a field, as of checkboxes. */
  readonly all: (name: string) => readonly string[]
}

/** Parses a submitted form. */
export async function sentForm(c: Context<Env>): Promise<SubmittedForm> {
  const fields = await c.req.parseBody({ all: true })
  const all = (name: string) =>
    [fields[name] ?? []].flat().filter(value => typeof value === 'string')
  const raw = (name: string) => all(name)[0] ?? ''
  return { all, raw, text: name => raw(name).trim() }
}

/** The parameters of a filter form that are set, by their names. */
export type QueryFilter<Name extends string> = Readonly<Partial<Record<Name, string>>>

/** Reads a filter form from the query. An empty field is left out. */
export function readFilter<Name extends string>(
  { req }: Context<Env>,
  names: readonly Name[],
): QueryFilter<Name> {
  const all = names.map(name => [name, req.query(name)?.trim() ?? ''] as const)
  return Object.fromEntries(all.filter(([, value]) => value !== '')) as QueryFilter<Name>
}

/** Returns the client error (4xx) to show at the form; rethrows any other error. */
export function problemWith(error: unknown): ApiProblem {
  if (!(error instanceof ApiProblem) || error.status >= 500) throw error
  const { status, code } = error
  const sentence = FORM_TEXTS[code]
  return sentence === undefined ? error : new ApiProblem(status, { error: sentence, code })
}

/** Replace API texts that mention fields or headers that forms do not show. */
const FORM_TEXTS: Partial<Record<ErrorBody['code'], string>> = {
  last_key: 'This is the last key of the account. To revoke it anyway, confirm again below.',
  idempotency_in_progress:
    'This form was already sent and is still being processed. Send it again to see the result.',
  idempotency_mismatch:
    'This form was already sent with different content. Send it again to create another one.',
}

/** Returns the text of an error with the label of the form in place of the name of the field. */
export const withLabel = ({ message }: Error, labels: Readonly<Record<string, string>>): string =>
  message.replace(/^"(\w+)(?:\[\d+\])?"/, (match, name) =>
    Object.hasOwn(labels, name) ? `"${labels[name]}"` : match,
  )

const FIELD = '_once'

/** Returns the nonce of a form, passed to `ask` as `once`; undefined if the field is missing. */
export const readNonce = ({ text }: Pick<SubmittedForm, 'text'>): string | undefined =>
  text(FIELD) || undefined

/**
 * Renders the nonce of a form, so a double click creates one object. A rejected form gets a new
 * nonce; a form still in progress keeps its nonce, so a resubmit returns the stored response.
 */
export function nonceField(
  random: Random,
  previous: { readonly once?: string | undefined; readonly problem?: Error | undefined } = {},
): Html {
  const isInProgress =
    previous.problem instanceof ApiProblem && previous.problem.code === 'idempotency_in_progress'
  const nonce = (isInProgress && previous.once) || `form_${random.token(NONCE_LENGTH)}`
  return html`<input type="hidden" name="${FIELD}" value="${nonce}" />`
}

/** Wraps the nonce of a form that stays on the page after htmx submits it. */
export const nonceTarget = (once: Html): Html => html`<div id="once">${once}</div>`
/** Replaces that nonce out of band. */
export const renewNonce = (once: Html): Html =>
  html`<div hx-swap-oob="innerHTML:#once">${once}</div>`

/** Unique among the forms of one key within a day. */
const NONCE_LENGTH = 20
