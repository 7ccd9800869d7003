import { createTestDashboard } from '../../support/dashboard.ts'
import { type Created, endpointActions } from '../../support/webhook-endpoint.ts'
import { fakeTransport } from '../../support/webhook-transport.ts'

/** A dashboard whose account has a webhook; `happen` and `attempt` create events and attempts. */
export async function endpoint(change: object = {}) {
  const receiver = fakeTransport()
  const engine = { zone: { 'app.test': { A: ['8.8.8.8'] } } }
  const dashboard = await createTestDashboard({ engine, deps: { transport: receiver } })
  /** Registers another webhook. */
  const another = async (change: object = {}): Promise<Created> => {
    const body = { url: 'https://app.test/hook', events: ['batch.completed'], ...change }
    const answer = await dashboard.json('/v1/webhooks', { body })
    if (answer.data === undefined) throw new Error(JSON.stringify(answer))
    return answer.data as Created
  }
  const { id, secret } = await another(change)
  const ways = endpointActions(dashboard, id)
  return { ...dashboard, ...ways, receiver, another, id, secret, path: `/webhooks/${id}` }
}

/** Headers of a request of htmx for a fragment. */
export const part = (target: string) => ({ 'HX-Request': 'true', 'HX-Target': target })

export const EVIL = '<img src=x onerror=alert(1)>'
/** The escaped form of it. */
export const HARMLESS = '&lt;img src=x onerror=alert(1)&gt;'
