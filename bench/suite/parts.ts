import { typicalList } from '../address/list.ts'
import { createParserVariants } from '../address/variants.ts'
import { forManyRecipients, neverRepeated } from '../answer/replies.ts'
import { createClassifierVariants } from '../answer/variants.ts'
import { tabulateStatements } from '../cluster/statements.ts'
import { ROUND_TRIP_MS, scenarioAt } from '../http/scenario.ts'
import { startService } from '../http/servers.ts'
import { formatSpeeds, measureSpeeds } from '../http/speed.ts'
import { measureStarts } from '../start/measure.ts'
import { measureStrategy } from '../typical-list/measure.ts'
import { STRATEGIES } from '../typical-list/strategies.ts'
import { formatStrategies, RULE_TITLES } from '../typical-list/table.ts'
import { SEED, SIZE } from '../typical-list/world.ts'
import { measureVariants, type Speed, type Variant } from '../variants.ts'
import { measureLists } from './lists.ts'
import type { Part, PartResult } from './part.ts'

/** The parts, in the order in which they are measured. */
export const PARTS = {
  'typical-list': { measure: measureTypicalList },
  lists: { measure: measureLists },
  start: { measure: async () => measureStart() },
  service: { measure: measureService },
  texts: { measure: async () => measureTexts() },
  statements: { measure: measureStatements },
} as const satisfies Record<string, Part>

export type PartName = keyof typeof PARTS

const START_RUNS = 11
const TEXTS = 20_000

/** It runs in virtual time, so it has no ratios; `test/engine/typical-list.test.ts` checks it. */
async function measureTypicalList(): Promise<PartResult> {
  const lines: string[] = []
  for (const harvestRule of ['row', 'share'] as const) {
    const measured = []
    for (const strategy of Object.values(STRATEGIES))
      measured.push(await measureStrategy(strategy, { size: SIZE, seed: SEED, harvestRule }))
    lines.push(`${RULE_TITLES[harvestRule]}:`, '', ...formatStrategies(measured), '')
  }
  return { ratios: {}, lines: lines.slice(0, -1) }
}

/** Counts have no ratios; `test/cluster/statements.slow.test.ts` checks them. */
async function measureStatements(): Promise<PartResult> {
  return { ratios: {}, lines: await tabulateStatements() }
}

function measureStart(): PartResult {
  const [, ...starts] = measureStarts(START_RUNS)
  return {
    ratios: Object.fromEntries(starts.map(({ name, ratio }) => [name, ratio])),
    lines: [
      '| command | of `node -e 0` |',
      '|---|---|',
      ...starts.map(({ name, ratio }) => `| \`${name}\` | ${ratio.toFixed(2)}× |`),
    ],
  }
}

async function measureService(): Promise<PartResult> {
  const served = await startService(scenarioAt(ROUND_TRIP_MS))
  try {
    const speeds = await measureSpeeds(served)
    const ratios = Object.fromEntries(speeds.slice(1).map(({ name, ratio }) => [name, ratio]))
    return { ratios, lines: formatSpeeds(speeds) }
  } finally {
    await served.close()
  }
}

function measureTexts(): PartResult {
  const speeds = {
    'addresses of a list': compare(createParserVariants(typicalList(TEXTS))),
    'replies to many recipients': compare(createClassifierVariants(forManyRecipients(TEXTS))),
    'replies that are all different': compare(createClassifierVariants(neverRepeated(TEXTS))),
  }
  const rows = Object.entries(speeds).flatMap(([texts, compared]) =>
    compared.map(({ name, other, ratio }) => ({ name: `${texts}: ${name}`, other, ratio })),
  )
  return {
    ratios: Object.fromEntries(rows.map(({ name, ratio }) => [name, ratio])),
    lines: [
      '| work | compared with | speed |',
      '|---|---|---|',
      ...rows.map(({ name, other, ratio }) => `| ${name} | ${other} | ${ratio.toFixed(2)}× |`),
    ],
  }
}

/** Compares all variants with the last one. */
function compare(variants: readonly Variant[]) {
  const speeds = measureVariants(variants)
  const last = speeds.at(-1) as Speed
  return speeds.slice(0, -1).map(({ name, perSecond }) => ({
    name,
    other: last.name,
    ratio: perSecond / last.perSecond,
  }))
}
