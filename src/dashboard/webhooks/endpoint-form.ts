import type { Context } from 'hono'
import { html } from 'hono/html'
import type { EventList } from '../../client/types.ts'
import type { Env } from '../deps.ts'
import { boxes, field, type SubmittedForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'

/** An endpoint as a form has it. */
export type Draft = {
  readonly url: string
  readonly events: readonly string[]
  readonly description: string
  readonly active: boolean
}

/** What somebody wrote into the form. */
export const draftOf = ({ text, all }: SubmittedForm): Draft => ({
  ...{ url: text('url'), events: all('events'), description: text('description') },
  active: text('active') === 'true',
})

/** The same as the API takes it. */
export const bodyOf = ({ description, ...rest }: Draft) => ({
  ...rest,
  description: description === '' ? null : description,
})

/** The fields of an endpoint; whether it is on is asked of a new one only, as others have a button for it. */
export async function endpointFields(
  c: Context<Env>,
  { url, events, description, active }: Draft,
  { isNew }: { readonly isNew: boolean },
): Promise<Html> {
  const { data } = await c.get('api').ask<EventList>('/v1/webhooks/events')
  const choices = data.events.map(one => ({
    ...{ value: one.event, label: one.event, hint: withCode(one.description) },
    checked: events.includes(one.event),
  }))
  return html`
    ${field({
      ...{ label: 'URL', name: 'url', type: 'url', value: url, required: true },
      placeholder: 'https://app.example.com/hook',
      hint: 'https, and reachable from the internet: each event comes there as a POST.',
    })}
    ${boxes('Events', 'events', choices)}
    ${field({
      ...{ label: 'Description', name: 'description', value: description },
      hint: 'For people: whose it is, or what it does. It may be left empty.',
    })}
    ${isNew ? boxes('State', 'active', [{ ...ON, checked: active }]) : NOTHING}`
}

/** Words between backticks are those of programs. */
const withCode = (sentence: string): Html =>
  html`${sentence.split('`').map((words, n) => (n % 2 === 0 ? words : html`<code>${words}</code>`))}`

const ON = { value: 'true', label: 'Switched on', hint: 'Events are sent to it from now on.' }
