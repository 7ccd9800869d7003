// Compares the start-up time of ev with that of an empty Node program: node bench/start.ts [runs]
import { machine } from './engine/figures.ts'
import { measureStarts } from './start/measure.ts'

const runs = Number(process.argv[2] ?? 21)
const starts = measureStarts(runs)
console.log(`Machine: ${machine()}; medians of ${runs} alternating starts.\n`)
console.log('| start | ms | fastest | more than node -e 0 | of node -e 0 |')
console.log('|---|---|---|---|---|')
for (const { name, medianMs, fastestMs, extraMs, ratio } of starts) {
  const cells = [medianMs, fastestMs].map(ms => ms.toFixed(0))
  console.log(`| ${[name, ...cells, `+${extraMs.toFixed(0)}`, ratio.toFixed(2)].join(' | ')} |`)
}
