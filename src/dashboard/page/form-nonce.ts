import { html } from 'hono/html'
import type { Random } from '../../platform/random.ts'
import { ApiProblem } from '../api.ts'
import type { SubmittedForm } from './form-data.ts'
import type { Html } from './html.ts'

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
