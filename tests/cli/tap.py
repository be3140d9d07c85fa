"""What test scripts share: running functions as TAP points, each in a folder of its own."""
import os
import shutil
import signal
import sys
import tempfile
import traceback


class Skip(Exception):
    """A test that this machine cannot run, with the reason."""


def default_signals():
    """Whoever runs the tests may ignore signals (nohup, a background job); programs must not inherit it."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def fault_of(test):
    """'' when the test holds, else why it does not."""
    try:
        test()
    except AssertionError as error:
        return str(error) or traceback.format_exc()
    except Skip:
        raise
    except Exception:
        return traceback.format_exc()
    return ''


def run(tests, prefix, note=''):
    """Run each test in a new working folder that is removed again, report in TAP, exit. `note` goes with
    a failure: a seed."""
    default_signals()
    failed = 0
    home = os.getcwd()
    print('1..%d' % len(tests), flush=True)
    for number, test in enumerate(tests, 1):
        work = tempfile.mkdtemp(prefix=prefix + '.', dir=os.environ.get('JASK_TEST_TMP', '.'))
        os.chdir(work)
        try:
            fault = fault_of(test)
            failed += bool(fault)
            print('%sok %d - %s' % ('not ' if fault else '', number, test.__name__), flush=True)
            for line in (note.splitlines() + fault.splitlines()) if fault else ():
                print('# ' + line, flush=True)
        except Skip as reason:
            print('ok %d - %s # SKIP %s' % (number, test.__name__, reason), flush=True)
        finally:
            os.chdir(home)
            shutil.rmtree(work)
    sys.exit(failed != 0)
