import type { EgressConfig } from '../../src/config/file-settings.ts'
import { type MxScript, scriptedMx } from './mx.ts'
import { isRandomRecipient, recipientsOf } from './recipients.ts'

/** Mail servers with a separate script for each egress, by its name. */
export function mxByEgress<N extends string>(
  scripts: Readonly<Record<N, MxScript | NonNullable<MxScript['answer']>>>,
) {
  const names = Object.keys(scripts) as N[]
  const byEgress = new Map(names.map(name => [name, scriptedMx(scripts[name])]))
  const of = (name: string) => {
    const mx = byEgress.get(name as N)
    if (mx === undefined) throw new Error(`no script for the egress ${name}`)
    return mx
  }
  return {
    of,
    egresses: names.map(name => ({ name, helo: `${name}.probe.test` })),
    dial: ({ name }: EgressConfig) => of(name),
    /** The recipients probed by an egress, in order, without random ones. */
    asked: (name: N) => recipientsOf(of(name).lines()).filter(to => !isRandomRecipient(to)),
  }
}

/** A server that rejects the connection because the client is on a blocklist. */
export const BLOCKS_US: MxScript = {
  greeting: '554 5.7.1 Service unavailable; Client host blocked using bl.example',
}
