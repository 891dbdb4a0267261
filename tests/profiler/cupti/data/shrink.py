"""shrink.py IN.fusebox OUT.fusebox: leaves out of a recorded session what the tests of GPU times do not read, and whose machine it was."""
import shutil
import sqlite3
import sys

source, target = sys.argv[1:]
shutil.copy(source, target)
db = sqlite3.connect(target)
db.executescript("""
DELETE FROM t_saved_graph;
DELETE FROM t_stack; UPDATE t_node SET stack = NULL; UPDATE t_guard SET stack = NULL;
UPDATE t_kernel_code SET llvm_ir = NULL;
DELETE FROM t_kernel_binary WHERE kernel_id <> (SELECT k.id FROM t_kernel k JOIN t_gpu_stats s ON s.kernel_id = k.id
  JOIN t_kernel_binary b ON b.kernel_id = k.id WHERE k.kind = 'generated' ORDER BY s.total_ns DESC LIMIT 1);
UPDATE t_kernel_code SET assembly = NULL WHERE kernel_id NOT IN (SELECT kernel_id FROM t_kernel_binary);
UPDATE t_info SET value = 'h200' WHERE key = 'hostname';
UPDATE t_info SET value = '/work' WHERE key = 'cwd';
DELETE FROM t_info WHERE key IN ('pid', 'cpu_features', 'platform');
""")
db.commit()
db.execute("VACUUM")
db.close()
