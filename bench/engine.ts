// Compares the speed of the engine with a bare probe:
// node bench/engine.ts [--quick] [--long] [--shape NAME] [--round-trip MS] [--repeats N]
import { compareWithBareProbe } from './engine/compare.ts'

await compareWithBareProbe('engine', process.argv.slice(2))
