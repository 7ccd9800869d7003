const EMAILS = Array.from({ length: 12 }, (_, n) => `u${n}@a.test`)

/** Returns a valid body for an operation such as `POST /v1/keys`, or undefined if it has none. */
export const validBody = (operation: string): unknown => BODIES[operation]?.()

const BODIES: Readonly<Record<string, () => unknown>> = {
  'POST /v1/verify/single': () => ({ email: 'ann@a.test' }),
  'POST /v1/verify': () => ({ email: 'ann@a.test' }),
  'POST /v1/verify/bulk': () => ({ emails: EMAILS }),
  'POST /v1/verify/batch': () => ({ emails: EMAILS }),
  'POST /v1/verify/file': () => {
    const form = new FormData()
    form.set('file', new File([EMAILS.join('\n')], 'list.csv'))
    return form
  },
  'POST /v1/verify/url': () => ({ url: 'https://a.example/list.csv' }),
  'POST /v1/keys': () => ({ name: 'new', scopes: ['jobs:read'] }),
  'PATCH /v1/keys/{id}': () => ({ name: 'another' }),
  'POST /v1/keys/{id}/rotate': () => ({}),
  'POST /v1/webhooks': () => ({ url: 'https://hook.test/ev', events: ['batch.completed'] }),
  'PATCH /v1/webhooks/{id}': () => ({ active: false }),
  'PUT /v1/webhooks/{id}': () => ({ url: 'https://hook.test/ev', events: ['batch.completed'] }),
  'POST /v1/webhooks/{id}/secret': () => ({}),
}
