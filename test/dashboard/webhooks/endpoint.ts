import { createTestDashboard } from '../../support/dashboard.ts'
import { type Created, happenings } from '../../support/webhook-endpoint.ts'
import { fakePost } from '../../support/webhook-transport.ts'

/** A dashboard whose account has a webhook; what happens to it is made to happen by `happen` and `attempt`. */
export async function endpoint(change: object = {}) {
  const receiver = fakePost()
  const engine = { zone: { 'app.test': { A: ['8.8.8.8'] } } }
  const home = await createTestDashboard({ engine, deps: { transport: receiver } })
  /** Registers one more. */
  const another = async (change: object = {}): Promise<Created> => {
    const body = { url: 'https://app.test/hook', events: ['batch.completed'], ...change }
    const answer = await home.json('/v1/webhooks', { body })
    if (answer.data === undefined) throw new Error(JSON.stringify(answer))
    return answer.data as Created
  }
  const { id, secret } = await another(change)
  const ways = happenings(home, id)
  return { ...home, ...ways, receiver, another, id, secret, path: `/webhooks/${id}` }
}

/** As htmx asks for a part of a page. */
export const part = (target: string) => ({ 'HX-Request': 'true', 'HX-Target': target })

export const EVIL = '<img src=x onerror=alert(1)>'
/** The same as text on a page. */
export const HARMLESS = '&lt;img src=x onerror=alert(1)&gt;'
