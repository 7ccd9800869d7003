import { verifyWebhook } from '../../client/webhook-signature.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Arrival } from './server.ts'

/** Whether each of the two signatures of a request holds. */
export type Signatures = {
  readonly own: boolean
  readonly standard: boolean
  /** What is wrong, in sentences; null: both hold. */
  readonly fault: string | null
}

/** Checks each by itself, as receivers go by one or the other. */
export async function checkSignatures(
  arrival: Arrival,
  secrets: readonly string[],
): Promise<Signatures> {
  const [own, standard] = await Promise.all([
    faultOf(arrival, OWN, secrets),
    faultOf(arrival, STANDARD, secrets),
  ])
  const faults = [own, standard].filter(fault => fault !== null)
  return {
    ...{ own: own === null, standard: standard === null },
    fault: faults.length === 0 ? null : faults.join(' '),
  }
}

const OWN = { name: 'X-EV-Signature', headers: ['x-ev-signature'] }
const STANDARD = {
  name: 'webhook-signature',
  headers: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
}

async function faultOf(
  { headers, body }: Arrival,
  signature: typeof OWN,
  secrets: readonly string[],
): Promise<string | null> {
  const own = signature.headers.map(name => [name, headers[name]] as const)
  if (own.every(([, value]) => value === undefined)) return `It has no ${signature.name}.`
  try {
    await verifyWebhook(body, Object.fromEntries(own), secrets)
    return null
  } catch (error) {
    return errorMessage(error)
  }
}
