import type { CallOptions, Connection } from '../connection.ts'
import type {
  EmittedEvent,
  EmittedEventAnswer,
  EmittedEventPage,
  ListEmittedEventsQuery,
} from '../types.ts'
import { unwrapData } from './data.ts'
import { createListing, type Listing } from './pagination.ts'

export type Events = {
  /** Lists events that were emitted for webhooks, newest first. */
  list(query?: Omit<ListEmittedEventsQuery, 'cursor'>, options?: CallOptions): Listing<EmittedEvent>
  /** Returns an event with its deliveries. */
  get(eventId: string, options?: CallOptions): Promise<EmittedEventAnswer['data']>
}

export function createEventsResource({ json }: Connection): Events {
  const get = <Answer>(path: string, query: object | undefined, options?: CallOptions) =>
    json<Answer>({ method: 'GET', path, query }, options)

  return {
    list: (query, options) =>
      createListing(cursor =>
        unwrapData(get<EmittedEventPage>('/v1/events', { ...query, cursor }, options)),
      ),
    get: (eventId, options) =>
      unwrapData(
        get<EmittedEventAnswer>(`/v1/events/${encodeURIComponent(eventId)}`, undefined, options),
      ),
  }
}
