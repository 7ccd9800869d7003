import { toClass } from '../../src/engine/verdict/verdict.ts'
import { createEngine } from '../../src/index.ts'
import { type Clock, MINUTE, sleep } from '../../src/platform/clock.ts'
import { countedRandom } from '../../test/support/random.ts'
import type { Session } from './company.ts'
import { ROUND_TRIP_MS, type World } from './world.ts'

/** The class of a result; `risky`: accepted by a domain that accepts every recipient. */
export type Answer = 'exists' | 'risky' | 'missing' | 'unknown'

export type OnAnswer = (address: string, answer: Answer) => void

/** A way to verify a list. */
export type Strategy = {
  readonly name: string
  readonly verify: (world: World, clock: Clock, onAnswer: OnAnswer) => Promise<void>
}

/** Connections of the first strategy at a time. */
const CONNECTIONS = 100
/** Addresses per minute of the second one. */
const PER_MINUTE = 60
/** A name that no mailbox has. */
const RANDOM_NAME = 'qx7w2kz9v4'

export const STRATEGIES = {
  ev: { name: 'ev, default settings', verify: verifyWithEv },
  connection: {
    name: `a connection per address, ${CONNECTIONS} at a time`,
    async verify(world, clock, onAnswer) {
      const prober = new PlainProber(world, clock)
      const addresses = world.addresses.values()
      const work = async () => {
        for (const address of addresses) onAnswer(address, await prober.probe(address))
      }
      await Promise.all(Array.from({ length: CONNECTIONS }, work))
    },
  },
  pace: {
    name: `${PER_MINUTE} addresses per minute, whatever the provider`,
    async verify(world, clock, onAnswer) {
      const prober = new PlainProber(world, clock)
      const running: Promise<void>[] = []
      for (const address of world.addresses) {
        running.push(prober.probe(address).then(answer => onAnswer(address, answer)))
        await sleep(clock, MINUTE / PER_MINUTE)
      }
      await Promise.all(running)
    },
  },
} as const satisfies Record<string, Strategy>

async function verifyWithEv(world: World, clock: Clock, onAnswer: OnAnswer): Promise<void> {
  const engine = createEngine({
    clock,
    random: countedRandom(),
    resolver: world,
    dial: world,
    helo: 'probe.example.com',
    allowRanges: ['10.0.0.0/8'],
    specialDomains: true,
    cache: false,
  })
  try {
    for await (const { email, verdict } of engine.verifyMany(world.addresses))
      onAnswer(email, ANSWER_BY_CLASS[toClass(verdict)])
  } finally {
    await engine.close()
  }
}

const ANSWER_BY_CLASS = {
  deliverable: 'exists',
  risky: 'risky',
  undeliverable: 'missing',
  unknown: 'unknown',
} as const satisfies Record<ReturnType<typeof toClass>, Answer>

/**
 * Probes each address over a connection of its own, and asks each domain once for a random name. It
 * reads every reply correctly and retries nothing.
 */
class PlainProber {
  readonly #world: World
  readonly #clock: Clock
  /** Whether a domain accepts every recipient. */
  readonly #acceptsAll = new Map<string, boolean>()

  constructor(world: World, clock: Clock) {
    this.#world = world
    this.#clock = clock
  }

  async probe(address: string): Promise<Answer> {
    const domain = address.slice(address.lastIndexOf('@') + 1)
    const company = this.#world.companyOf(domain)
    if (company === null) return 'missing'
    await this.#roundTrip()
    const session = company.open()
    try {
      return await this.#ask(session, address, domain)
    } finally {
      session.close()
    }
  }

  async #ask(session: Session, address: string, domain: string): Promise<Answer> {
    const greeting = session.greet()
    await this.#roundTrip()
    if (!greeting.startsWith('2')) return 'unknown'
    session.reply('EHLO probe.example.com')
    await this.#roundTrip()
    const reply = await this.#recipient(session, address)
    if (reply.startsWith('5')) return 'missing'
    if (!reply.startsWith('2')) return 'unknown'
    if (!this.#acceptsAll.has(domain)) {
      const random = await this.#recipient(session, `${RANDOM_NAME}@${domain}`)
      if (/^[25]/.test(random)) this.#acceptsAll.set(domain, random.startsWith('2'))
    }
    return this.#acceptsAll.get(domain) === false ? 'exists' : 'risky'
  }

  async #recipient(session: Session, address: string): Promise<string> {
    session.reply('RSET')
    session.reply('MAIL FROM:<>')
    const reply = session.reply(`RCPT TO:<${address}>`)
    await this.#roundTrip()
    return reply
  }

  async #roundTrip(): Promise<void> {
    await sleep(this.#clock, ROUND_TRIP_MS)
  }
}
