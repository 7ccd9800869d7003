import type { EgressConfig } from '../../src/config/egresses.ts'
import { type MxScript, scriptedMx } from './mx.ts'
import { isUnguessable, recipientsOf } from './recipients.ts'

/** Mail servers as each egress meets them: a script for each, by its name. */
export function mxByEgress<N extends string>(
  scripts: Readonly<Record<N, MxScript | NonNullable<MxScript['answer']>>>,
) {
  const names = Object.keys(scripts) as N[]
  const met = new Map(names.map(name => [name, scriptedMx(scripts[name])]))
  const of = (name: string) => {
    const mx = met.get(name as N)
    if (mx === undefined) throw new Error(`no script for the egress ${name}`)
    return mx
  }
  return {
    of,
    egresses: names.map(name => ({ name, helo: `${name}.probe.test` })),
    dial: ({ name }: EgressConfig) => of(name),
    /** Who was asked about by an egress, in order; unguessable names aside. */
    asked: (name: N) => recipientsOf(of(name).lines()).filter(to => !isUnguessable(to)),
  }
}

/** Greets us with a refusal, as a server does that has our address on a list. */
export const BLOCKS_US: MxScript = {
  greeting: '554 5.7.1 Service unavailable; Client host blocked using bl.example',
}
