import { afterAll } from 'vitest'
import { finishFile } from './cleanup.ts'

// A setup file runs once for each test file.
afterAll(finishFile)
