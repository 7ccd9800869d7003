// Loads fast-check (60 ms) in each file; a file that imports `fc` from property.ts needs no setup.
import './property.ts'
