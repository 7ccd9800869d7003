import { describe, expect, test } from 'vitest'
import { createTestEngine, toRecipients } from '../../support/engine.ts'
import type { MxSession } from '../../support/mx.ts'

const T = '550 5.7.1 Ei onnistu'
const OK = '250 2.1.5 Ok'
const FULL = Array.from({ length: 12 }, (_, n) => `user${n}@a.test`)
const MISSING = ['x0@a.test', 'x1@a.test', 'x2@a.test']

type Server = (counters: Counters) => (to: string, session: MxSession) => string

type Counters = { asked: number; perSession: Map<MxSession, number>; unknown: number; seen: Map<string, number>; unknownIn: Map<MxSession, number> }

const exists = (to: string) => /^user\d+@/.test(to)

const plain = (to: string) => (exists(to) ? OK : T)

const servers: [string, Server][] = []
for (let n = 0; n < 14; n++) {
  servers.push([`blocks each connection from recipient ${n + 1} on`, c => (to, s) => ((c.perSession.get(s) as number) > n ? T : plain(to))])
  servers.push([`blocks the client from recipient ${n + 1} on`, c => to => (c.asked > n ? T : plain(to))])
  servers.push([`allows ${n} unknown recipients`, c => to => (c.unknown > n ? T : plain(to))])
  servers.push([`allows ${n} unknown recipients in a connection`, c => (to, s) => ((c.unknownIn.get(s) ?? 0) > n ? T : plain(to))])
}
for (let n = 0; n < 5; n++) servers.push([`blocks from connection ${n + 1} on`, () => (to, s) => (s.number >= n ? T : plain(to))])
for (let n = 2; n < 6; n++) servers.push([`refuses every recipient ${n} times`, c => to => ((c.seen.get(to) as number) < n ? T : plain(to))])
servers.push(['accepts one only', () => to => (to.startsWith('user3@') ? OK : T)])
servers.push(['accepts postmaster only', () => to => (to.startsWith('postmaster@') ? OK : T)])

function run(server: Server) {
  const c: Counters = { asked: 0, perSession: new Map(), unknown: 0, seen: new Map(), unknownIn: new Map() }
  const says = server(c)
  return createTestEngine({
    script: toRecipients((to, session) => {
      c.asked++
      c.perSession.set(session, (c.perSession.get(session) ?? 0) + 1)
      c.seen.set(to, (c.seen.get(to) ?? 0) + 1)
      if (!exists(to)) { c.unknown++; c.unknownIn.set(session, (c.unknownIn.get(session) ?? 0) + 1) }
      return says(to, session)
    }),
  })
}

const shuffled = (all: string[], seed: number) => all.map((one, i) => [((i + 1) * 7919 * (seed + 3)) % 101, one] as const).sort((a, b) => a[0] - b[0]).map(([, one]) => one)

test.each(servers)('%s', async (name, server) => {
  const wrong: string[] = []
  for (let seed = 0; seed < 6; seed++) {
    const home = run(server)
    const list = shuffled([...FULL, ...MISSING, 'postmaster@a.test'], seed)
    const note = (how: string, r: { email: string; verdict: { reason: string } }) => {
      if (exists(r.email) && r.verdict.reason === 'rejected_email') wrong.push(`${how} ${seed} ${r.email}`)
    }
    if (seed < 3) {
      for (const r of await home.many(list)) note('list', r)
      for (const email of list) note('single after', await home.verify(email, { forceRefresh: true }))
    } else {
      for (const email of list) note('single', await home.verify(email))
      for (const r of await home.many(list, { forceRefresh: true })) note('list after', r)
    }
  }
  expect(wrong).toEqual([])
})
