import type { Context } from 'hono'
import { html } from 'hono/html'
import type { EventList } from '../../client/types.ts'
import type { Env } from '../deps.ts'
import { boxes, field, type SubmittedForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'

/** The values of the endpoint form. */
export type Draft = {
  readonly url: string
  readonly events: readonly string[]
  readonly description: string
  readonly active: boolean
}

/** Parses the submitted form. */
export const draftOf = ({ text, all }: SubmittedForm): Draft => ({
  ...{ url: text('url'), events: all('events'), description: text('description') },
  active: text('active') === 'true',
})

/** Converts form values to a request body. */
export const bodyOf = ({ description, ...rest }: Draft) => ({
  ...rest,
  description: description === '' ? null : description,
})

/** Renders the fields of an endpoint. Only a new one has the state field; others have a button. */
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
      hint: 'An https URL reachable from the internet. Each event is sent there as a POST request.',
    })}
    ${boxes('Events', 'events', choices)}
    ${field({
      ...{ label: 'Description', name: 'description', value: description },
      hint: 'Optional: the owner or purpose of the endpoint.',
    })}
    ${isNew ? boxes('State', 'active', [{ ...ON, checked: active }]) : NOTHING}`
}

/** Renders text between backticks as code. */
const withCode = (sentence: string): Html =>
  html`${sentence.split('`').map((words, n) => (n % 2 === 0 ? words : html`<code>${words}</code>`))}`

const ON = { value: 'true', label: 'Enabled', hint: 'Send events from now on.' }
