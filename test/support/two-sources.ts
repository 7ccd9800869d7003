import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import type { Rule } from '../../src/simulator/smtp-host/rule.ts'
import { onFileFinished } from './cleanup.ts'
import { type HostPlan, withOwnHosts } from './own-hosts.ts'

// Two source addresses over real sockets, which servers can tell apart.

export const [OFFICE, CLOUD] = ['127.0.0.2', '127.0.0.3']
export const EGRESSES = [
  { name: 'office', sourceAddress: OFFICE, helo: 'office.example.com' },
  { name: 'cloud', sourceAddress: CLOUD, helo: 'cloud.example.com' },
]

/** Starts a simulator in which each domain has its own MX, and so its own operator. */
export async function startHosts(plans: Readonly<Record<string, HostPlan>>): Promise<Simulator> {
  const simulator = await startSimulator({ ...withOwnHosts(plans), mailboxes: ['user*'] })
  onFileFinished(() => simulator.close())
  return simulator
}

export const blockClient = (client: string): Rule => ({
  on: 'CONNECT',
  client,
  reply: '554 5.7.1 Service unavailable; Client host [{client}] blocked using bl.example',
  end: 'close',
})

export const users = (count: number, domain: string) =>
  Array.from({ length: count }, (_, n) => `user${n}@${domain}`)
